// Package standin has what the stand-ins for platforms share, whatever they
// speak: what a test tells them to do wrong, how often they were asked for
// something, and what should not have happened.
//
// A stand-in embeds Faults and Notes, wraps its handler in Handler, and lets
// each of its handlers begin with Strike.
package standin

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Fault is something that goes wrong, once unless Times says otherwise. Of
// Status, Hang and Lost at most one is set; with none, all goes well.
type Fault struct {
	// On is what it strikes, in the words of the stand-in; empty: anything.
	On string
	// Skip lets so many requests through first; Times strikes so often (zero:
	// once, negative: always).
	Skip, Times int
	// Do is called first, when the whole request has arrived: whatever becomes
	// of the client then, it has asked. It may read the body. nil: nothing.
	Do func(*http.Request)

	// Status answers instead of doing anything, with Header and Body.
	Status int
	Header http.Header
	Body   string
	// Hang does nothing and never answers.
	Hang bool
	// Lost does what was asked and drops the connection instead of answering.
	Lost bool
}

// Faults are those of one stand-in. The zero value has none; all methods are
// safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	all   []*Fault
	calls map[string]int
	watch func(what string, body []byte)
}

// Watch has a function called with what is asked for and the body, whenever a
// whole request has arrived: before any fault, and before anything is done. It
// may be called from several goroutines at once.
func (f *Faults) Watch(watch func(what string, body []byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = watch
}

// Inject makes something go wrong. Faults are tried in the order in which
// they were injected, and the first that is due strikes alone.
func (f *Faults) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault.Times == 0 {
		fault.Times = 1
	}
	f.all = append(f.all, &fault)
}

// ClearFaults ends all faults. A request that hangs goes on hanging.
func (f *Faults) ClearFaults() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = nil
}

// Calls tells how often something was asked for, faults included. It is named
// as in Fault.
func (f *Faults) Calls(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[what]
}

// Strike counts that something was asked for and does what is due to go wrong.
// It says whether that was all; the caller then returns at once. A handler
// calls it once, with the writer that Handler gave it.
//
// The whole request is read before: a client that dies while it sends has
// asked for nothing. It is also how the server learns that the client of a
// request that hangs has left, as net/http only looks when the body is read.
func (f *Faults) Strike(w http.ResponseWriter, r *http.Request, what string) (over bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if watch := f.watcher(); watch != nil {
		watch(what, body)
	}
	due := f.due(what)
	if due.Do != nil {
		due.Do(r)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	switch {
	case due.Hang:
		<-r.Context().Done() // the client left, or the server was closed
		panic(http.ErrAbortHandler)
	case due.Status != 0:
		maps.Copy(w.Header(), due.Header)
		WriteJSON(w, due.Status, []byte(due.Body))
		return true
	case due.Lost:
		w.(*answer).lost = true
	}
	return false
}

func (f *Faults) watcher() func(string, []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watch
}

// due counts a request and returns the fault that strikes it; the zero Fault
// is none.
func (f *Faults) due(what string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	f.calls[what]++
	for _, fault := range f.all {
		if (fault.On != "" && fault.On != what) || fault.Times == 0 {
			continue
		}
		if fault.Skip > 0 {
			fault.Skip--
			continue
		}
		if fault.Times > 0 {
			fault.Times--
		}
		return *fault
	}
	return Fault{}
}
