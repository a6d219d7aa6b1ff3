package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// assumedOutput is how many tokens a call may answer with when it does not say.
const assumedOutput = 16 << 10

// chat is a chat/completions request, understood and written anew: a document
// with two "model" keys would otherwise be one thing to us and another to the
// provider.
type chat struct {
	model string
	body  []byte
	// output tokens that it allows at most.
	output int
}

// decided are the keys that we decide on.
func decided() []string {
	return []string{"model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"}
}

// steering are the keys by which a router or provider would take another
// model, host or tariff than what was granted and is priced.
func steering() []string {
	return []string{
		"models", "route", "fallbacks", "preset", "plugins", "provider", "service_tier", "web_search_options",
		"api_base", "api_key", "base_url", "custom_llm_provider", "model_list", "user_config",
	}
}

// parseChat checks a request's form. What is not ours to decide stays byte for
// byte, but for white space between the tokens of JSON.
func parseChat(raw []byte) (chat, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return chat{}, malformed("the request is not a JSON object")
	}
	if err := checkKeys(fields); err != nil {
		return chat{}, err
	}
	var c chat
	if json.Unmarshal(fields["model"], &c.model) != nil || c.model == "" {
		return chat{}, malformed("the request names no model")
	}
	if err := wantUsage(fields); err != nil {
		return chat{}, err
	}
	c.output = outputLimit(fields)
	var err error
	c.body, err = encode(fields)
	return c, err
}

func malformed(say string) *refusal { return refuse(http.StatusBadRequest, codeMalformed, "%s", say) }

// checkKeys refuses what could mean something else upstream than here: there
// are decoders that take "Model" for "model".
func checkKeys(fields map[string]json.RawMessage) error {
	for key := range fields {
		same := func(s string) bool { return strings.EqualFold(s, key) }
		if slices.ContainsFunc(steering(), same) {
			return malformed(fmt.Sprintf("%q is not allowed in a request", key))
		}
		if slices.ContainsFunc(decided(), same) && !slices.Contains(decided(), key) {
			return malformed(fmt.Sprintf("%q is not spelled in small letters", key))
		}
	}
	return nil
}

// wantUsage makes a stream end with what it used.
func wantUsage(fields map[string]json.RawMessage) error {
	var stream bool
	if raw := fields["stream"]; raw != nil && json.Unmarshal(raw, &stream) != nil {
		return malformed("stream is neither true nor false")
	}
	if !stream {
		delete(fields, "stream_options") // valid with a stream only
		return nil
	}
	options := map[string]json.RawMessage{}
	if raw := fields["stream_options"]; raw != nil && json.Unmarshal(raw, &options) != nil {
		return malformed("stream_options is not an object")
	}
	if options == nil { // it was null
		options = map[string]json.RawMessage{}
	}
	options["include_usage"] = json.RawMessage("true")
	raw, err := encode(options)
	fields["stream_options"] = raw
	return err
}

// outputLimit is the most that the answer can hold, as far as the request says.
func outputLimit(fields map[string]json.RawMessage) int {
	limit := max(number(fields["max_completion_tokens"]), number(fields["max_tokens"]))
	if limit == 0 {
		limit = assumedOutput
	}
	return int(min(limit*max(1, number(fields["n"])), maxTokens))
}

// number is zero for whatever is none: the provider will say so.
func number(raw json.RawMessage) float64 {
	var n float64
	if json.Unmarshal(raw, &n) != nil || n < 0 {
		return 0
	}
	return min(n, maxTokens)
}

func encode(fields map[string]json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return nil, fmt.Errorf("write the request anew: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// readChat reads a request of at most limit bytes.
func readChat(body io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case int64(len(raw)) > limit:
		// Some clients listen only when they have sent everything.
		_, _ = io.CopyN(io.Discard, body, limit)
		return nil, refuse(http.StatusRequestEntityTooLarge, codeTooLarge, "the request is longer than %d bytes", limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, malformed("the request broke off")
	case err != nil:
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return raw, nil
}
