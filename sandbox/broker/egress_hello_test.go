package broker

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"
)

// FuzzHello: whatever comes, what was read is the beginning of it, and nothing
// is taken for a greeting that no client would send.
func FuzzHello(f *testing.F) {
	for _, name := range []string{"www.example.com", ""} {
		f.Add(greeting(f, name))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		name, read, err := readHello(bytes.NewReader(in))
		if !bytes.HasPrefix(in, read) {
			t.Fatalf("read %x of %x", read, in)
		}
		if err != nil && name != "" {
			t.Fatalf("an error and %q", name)
		}
		if err == nil && (len(read) < 40 || read[0] != 22) {
			t.Fatalf("%x is taken for a greeting", read)
		}
		if err == nil && name != "" && !bytes.Contains(handshake(read), []byte(name)) {
			t.Fatalf("%q is not in %x", name, read)
		}
	})
}

// handshake joins what the records hold.
func handshake(records []byte) []byte {
	var all []byte
	for len(records) > 5 {
		n := min(int(records[3])<<8|int(records[4]), len(records)-5)
		all = append(all, records[5:5+n]...)
		records = records[5+n:]
	}
	return all
}

// greeting is what a client sends first.
func greeting(t testing.TB, name string) []byte {
	t.Helper()
	mouth, far := net.Pipe()
	go func() {
		_ = tls.Client(mouth, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		_ = mouth.Close()
	}()
	defer far.Close()
	_, read, err := readHello(far)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestHelloInPieces: a greeting that is spread over many records is understood.
func TestHelloInPieces(t *testing.T) {
	t.Parallel()
	whole := handshake(greeting(t, "www.example.com"))
	var pieces []byte
	for part := range bytes.SplitSeq(whole, nil) {
		pieces = append(append(pieces, 22, 3, 1, 0, byte(len(part))), part...)
	}
	// Go gives up on a stream of records without progress, not on small ones.
	name, read, err := readHello(bytes.NewReader(pieces))
	if err != nil || name != "www.example.com" || !bytes.Equal(read, pieces) {
		t.Errorf("%q, %d of %d bytes, %v", name, len(read), len(pieces), err)
	}
}
