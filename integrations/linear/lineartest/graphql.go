package lineartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"ship/bot/standin"
)

const maxBody = 4 << 20

// request is one of GraphQL's.
type request struct {
	Query         string          `json:"query"`
	OperationName string          `json:"operationName"`
	Variables     json.RawMessage `json:"variables"`
}

func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body)) // for faults
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		s.refuse(w, "", malformed("the request is no JSON"))
		return
	}
	if s.Strike(w, r, in.OperationName) {
		return
	}
	data, err := s.execute(w.Header(), r.Header.Get("Authorization"), in)
	if err != nil {
		s.refuse(w, in.OperationName, err)
		return
	}
	standin.WriteJSON(w, http.StatusOK, mustJSON(object{"data": data}))
}

// refuse answers with an error, and keeps those that no client of ours should
// ever see.
func (s *Server) refuse(w http.ResponseWriter, operation string, err error) {
	var p problem
	if !errors.As(err, &p) {
		p = problem{status: http.StatusInternalServerError, kind: "internal error", code: "INTERNAL_SERVER_ERROR", message: err.Error()}
	}
	if p.status == 0 {
		p.status = s.opts.InputStatus
	}
	if p.kind == "graphql error" || p.kind == "internal error" {
		s.Note("%s: %v", operation, err)
	}
	standin.WriteJSON(w, p.status, p.body(operation))
}

// execute does one operation: who asks, what, whether there is allowance left,
// and then its handler.
func (s *Server) execute(header http.Header, authorization string, in request) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.bearer(authorization)
	if t == nil {
		return nil, errUnauthenticated
	}
	o, err := s.lookUp(in)
	if err != nil {
		return nil, malformed(err.Error())
	}
	if err := s.spend(header, o.cost); err != nil {
		return nil, err
	}
	if !slices.Contains(t.scopes, o.scope) {
		return nil, forbidden(o.scope)
	}
	answer, err := o.run(s, in.Variables)
	if err != nil {
		return nil, err
	}
	data := asLinear(mustJSON(answer))
	if v := s.opts.Validator; v != nil {
		if err := v.Response(in.Query, in.OperationName, data); err != nil {
			s.Note("%s: answer: %v", in.OperationName, err)
		}
	}
	return data, nil
}

// lookUp finds the operation and makes sure that it is the one that is meant.
func (s *Server) lookUp(in request) (operation, error) {
	o, ok := s.known[in.OperationName]
	switch {
	case !ok:
		return o, errors.New("the stand-in has no such operation")
	case in.Query != o.document:
		return o, errors.New("the document is not that of graphql/linear")
	}
	if v := s.opts.Validator; v != nil {
		if err := v.Request(in.Query, in.OperationName, in.Variables); err != nil {
			return o, err
		}
	}
	var variables map[string]json.RawMessage
	if err := json.Unmarshal(in.Variables, &variables); len(in.Variables) > 0 && err != nil {
		return o, err
	}
	for name, value := range variables {
		if string(value) == "null" {
			return o, errors.New("$" + name + " goes as null, which clears what it stands for")
		}
	}
	return o, nil
}

// operation is one that the stand-in does.
type operation struct {
	document string
	// cost in points, see schema.Validator.Cost.
	cost float64
	// scope that the token must have.
	scope string
	// run does it. It holds mu. The answer is a response of graphql/linear.
	run func(s *Server, variables json.RawMessage) (any, error)
}

// takes decodes the variables for a handler.
func takes[V, R any](handle func(*Server, V) (R, error)) func(*Server, json.RawMessage) (any, error) {
	return func(s *Server, raw json.RawMessage) (any, error) {
		var variables V
		if len(raw) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(raw))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&variables); err != nil {
				return nil, malformed(err.Error())
			}
		}
		return handle(s, variables)
	}
}

// nullable are the fields that a response type holds empty where Linear has
// null.
var nullable = map[string]bool{
	"description": true, "endCursor": true, "startedAt": true, "endedAt": true, "editedAt": true,
	"signal": true, "subtitle": true, "sourceType": true, "url": true,
}

// asLinear writes an answer as Linear would: null for what is not set, and the
// type's name with each content.
func asLinear(answer []byte) json.RawMessage {
	var tree any
	if err := json.Unmarshal(answer, &tree); err != nil {
		panic("lineartest: " + err.Error()) // it was marshalled just now
	}
	restore(tree)
	return mustJSON(tree)
}

func restore(node any) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			restore(item)
		}
	case map[string]any:
		for key, value := range n {
			if text, ok := value.(string); ok && nullable[key] && (text == "" || strings.HasPrefix(text, "0001-01-01")) {
				n[key] = nil
			}
			if content, ok := value.(map[string]any); ok && key == "content" {
				typed(content)
			}
			restore(value)
		}
	}
}

// typed completes the content of an activity.
func typed(content map[string]any) {
	kind, _ := content["type"].(string)
	if kind == "" {
		return
	}
	content["__typename"] = "AgentActivity" + strings.ToUpper(kind[:1]) + kind[1:] + "Content"
	if kind == "action" && content["result"] == nil {
		content["result"] = nil
	}
}
