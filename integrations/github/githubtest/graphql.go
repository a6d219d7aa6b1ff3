package githubtest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	ghql "ship/graphql/github"
)

// graphQLError is one of GitHub's, with its type beside the message.
type graphQLError struct {
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
}

func (e graphQLError) Error() string { return e.Message }

// serveGraphQL does the mutations that ship knows, on operations that hold
// against its subset of the schema.
func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request) {
	if s.Strike(w, r, "POST /graphql") {
		return
	}
	var in struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&in); err != nil {
		writeJSON(w, http.StatusBadRequest, object{"message": "Problems parsing JSON"})
		return
	}
	operation, err := parseOperation(in.Query, in.OperationName, in.Variables)
	if err != nil {
		s.Note("graphql: %v", err)
		writeJSON(w, http.StatusOK, object{"errors": []graphQLError{{Message: err.Error()}}})
		return
	}
	s.answerGraphQL(w, r, operation, in.Variables)
}

func parseOperation(query, name string, variables map[string]any) (*ast.OperationDefinition, error) {
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: ghql.Schema})
	if err != nil {
		return nil, err
	}
	document, problems := gqlparser.LoadQuery(schema, query)
	if len(problems) > 0 {
		return nil, problems
	}
	operation := document.Operations.ForName(name)
	if operation == nil {
		return nil, errors.New("there is no operation of that name")
	}
	_, err = validator.VariableValues(schema, operation, variables)
	return operation, err
}

func (s *Server) answerGraphQL(w http.ResponseWriter, r *http.Request, o *ast.OperationDefinition, variables map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.bearer(r)
	if t == nil {
		writeJSON(w, http.StatusUnauthorized, object{"message": "Bad credentials"})
		return
	}
	field, ok := o.SelectionSet[0].(*ast.Field)
	if !ok {
		writeJSON(w, http.StatusOK, object{"errors": []graphQLError{{Message: "no field"}}})
		return
	}
	arguments, _ := field.ArgumentMap(variables)["input"].(map[string]any)
	answer, err := s.mutate(t, field.Name, arguments)
	if err != nil {
		var known graphQLError
		if !errors.As(err, &known) {
			known = graphQLError{Message: err.Error()}
		}
		writeJSON(w, http.StatusOK, object{"data": object{field.Alias: nil}, "errors": []graphQLError{known}})
		return
	}
	writeJSON(w, http.StatusOK, object{"data": object{field.Alias: answer}})
}

func (s *Server) mutate(t *token, field string, in map[string]any) (object, error) {
	switch field {
	case "markPullRequestReadyForReview":
		return s.markReady(t, text(in["pullRequestId"]))
	case "addReaction":
		return s.addReaction(t, text(in["subjectId"]), text(in["content"]))
	}
	return nil, graphQLError{Message: "not served here: " + field}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func (s *Server) markReady(t *token, id string) (object, error) {
	r, i := s.byNode(t, func(i *issue) bool { return i.pull != nil && nodeID("PR", i.pull.id) == id })
	switch {
	case i == nil:
		return nil, unresolved(id)
	case !t.allows("pull_requests=write") || !t.allows("contents=write"):
		return nil, graphQLError{Type: "FORBIDDEN", Message: errLacking.message}
	case !i.pull.draft:
		return nil, graphQLError{Type: "UNPROCESSABLE", Message: "Pull request is not a draft"}
	}
	i.pull.draft = false
	return object{"pullRequest": object{"id": id, "number": i.number, "url": s.pageURL(r, i), "isDraft": false}}, nil
}

func unresolved(id string) error {
	return graphQLError{Type: "NOT_FOUND", Message: "Could not resolve to a node with the global id of '" + id + "'"}
}

// byNode finds what a token may see.
func (s *Server) byNode(t *token, match func(*issue) bool) (*repository, *issue) {
	for _, r := range s.repos {
		if !t.reaches(r) {
			continue
		}
		for _, i := range r.issues {
			if match(i) {
				return r, i
			}
		}
	}
	return nil, nil
}

func (s *Server) addReaction(t *token, id, content string) (object, error) {
	var on *review
	_, _ = s.byNode(t, func(i *issue) bool {
		for _, v := range i.reviews {
			if nodeID("RV", v.id) == id {
				on = v
			}
		}
		return on != nil
	})
	if on == nil {
		return nil, unresolved(id)
	}
	if !t.allows("pull_requests=write") {
		return nil, graphQLError{Type: "FORBIDDEN", Message: errLacking.message}
	}
	made, _ := react(&on.reactions, reaction{id: s.newID(), by: s.author(), content: strings.ToLower(content)})
	return object{"reaction": object{"id": nodeID("RE", made.id), "content": content}}, nil
}
