package github

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestTokenStaysHome: a redirect is followed on the host that was asked, and to no
// other, where our token would go along.
func TestTokenStaysHome(t *testing.T) {
	t.Parallel()
	strangers := 0
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers++ }))
	t.Cleanup(stranger.Close)
	mux := http.NewServeMux()
	mux.Handle("/renamed", http.RedirectHandler("/here", http.StatusMovedPermanently))
	mux.Handle("/away", http.RedirectHandler(stranger.URL, http.StatusMovedPermanently))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusTemporaryRedirect))
	mux.HandleFunc("/here", func(http.ResponseWriter, *http.Request) {})
	home := httptest.NewServer(mux)
	t.Cleanup(home.Close)
	base, err := url.Parse(home.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	client := (&app{api: base}).client(http.DefaultTransport)
	for path, want := range map[string]error{"/renamed": nil, "/away": errAstray, "/round": errAstray} {
		request, err := client.NewRequest(http.MethodGet, home.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Do(t.Context(), request, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if strangers > 0 {
		t.Errorf("another host was asked %d times", strangers)
	}
}
