package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// args are those of one call. Objects and lists are JSON text, however they
// came.
type args struct {
	token  string
	values map[string]string
}

// maxBody is how much is read of a request.
const maxBody = 1 << 20

// readArgs takes the arguments from a form, from JSON, or from the query. The
// token may be in the header, or in a form.
func readArgs(w http.ResponseWriter, r *http.Request) (args, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	in := args{token: token, values: map[string]string{}}
	in.takeForm(r.URL.Query())
	if _, ok := in.values["token"]; ok {
		return in, refuse("invalid_auth") // such tokens end up in logs
	}
	if r.Method != http.MethodPost {
		return in, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return in, refuse("request_timeout")
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return in, in.takeJSON(body)
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return in, refuse("invalid_form_data")
		}
		in.takeForm(form)
		if token, ok := in.values["token"]; ok {
			in.token = token
			delete(in.values, "token")
		}
		return in, nil
	}
	return in, refuse("invalid_post_type")
}

func (a args) takeForm(form url.Values) {
	for key, values := range form {
		a.values[key] = values[0]
	}
}

func (a args) takeJSON(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return refuse("invalid_json")
	}
	for key, raw := range fields {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &text) == nil:
			a.values[key] = text
		default:
			a.values[key] = string(raw)
		}
	}
	return nil
}

func (a args) get(key string) string { return a.values[key] }

func (a args) given(key string) bool {
	_, ok := a.values[key]
	return ok
}

// yes reads a boolean as Slack does.
func (a args) yes(key string) bool {
	v := a.values[key]
	return v == "1" || v == "true"
}

// count reads a number between 1 and most.
func (a args) count(key string, otherwise, most int) (int, error) {
	text := a.values[key]
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, refuse("invalid_limit")
	}
	return n, nil
}

// page cuts one page out of a list, as long as asked for and allowed, and
// returns where the next one begins.
func page[T any](all []T, cursor string, size int) (out []T, next string, err error) {
	from := 0
	if cursor != "" {
		if _, err := fmt.Sscanf(cursor, "next:%d", &from); err != nil || from < 0 || from > len(all) {
			return nil, "", refuse("invalid_cursor")
		}
	}
	to := min(from+size, len(all))
	if to < len(all) {
		next = fmt.Sprintf("next:%d", to)
	}
	return all[from:to], next, nil
}

// paged is page with what the caller asked for, within the limits.
func paged[T any](s *Server, in args, all []T, size int) ([]T, string, error) {
	return page(all, in.get("cursor"), s.atMost(size))
}

// atMost is how many things are on a page when so many were asked for.
func (s *Server) atMost(size int) int {
	if most := s.opts.Limits.Page; most > 0 {
		return min(size, most)
	}
	return size
}
