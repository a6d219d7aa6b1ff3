// Package openapi checks what goes through the stand-in for GitHub against
// GitHub's own description of its REST API, in both directions.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Validator is a githubtest.Validator. It may be used by many servers at once.
type Validator struct{ router routers.Router }

// Load reads a description in OpenAPI 3.0.
func Load(path string) (*Validator, error) {
	b, err := whole(path)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	doc.Servers = nil // the paths alone are matched
	correct(doc)
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation())
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return &Validator{router: router}, nil
}

// supplement describes what GitHub documents and an abridged description may
// lack, in terms of what it has.
//
//go:embed supplement.json
var supplement []byte

// whole reads a description and adds the paths that it lacks.
func whole(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, paths, more := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(b, &doc), json.Unmarshal(doc["paths"], &paths), json.Unmarshal(supplement, &more)); err != nil {
		return nil, err
	}
	for name, item := range more {
		if _, known := paths[name]; !known {
			paths[name] = item
		}
	}
	if doc["paths"], err = json.Marshal(paths); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// correct mends a slip of the description: in the list of installations the
// account is said to be a person and an enterprise at once, where everywhere
// else, and in truth, it is either.
func correct(doc *openapi3.T) {
	path := doc.Paths.Find("/app/installations")
	if path == nil || path.Get == nil || path.Get.Responses.Status(http.StatusOK) == nil {
		return
	}
	media := path.Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json")
	if media == nil || media.Schema.Value.Items == nil {
		return
	}
	if account := media.Schema.Value.Items.Value.Properties["account"]; account != nil && len(account.Value.AllOf) == 2 {
		account.Value.AnyOf, account.Value.AllOf = account.Value.AllOf, nil
	}
}

// Request checks a request and its body.
func (v *Validator) Request(r *http.Request, body []byte) error {
	in, err := v.input(r, body)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateRequest(r.Context(), in)
}

// Response checks an answer, and that its status is one that is described.
func (v *Validator) Response(r *http.Request, status int, header http.Header, body []byte) error {
	in, err := v.input(r, nil)
	if err != nil {
		return err
	}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), Options: in.Options,
	})
}

func (v *Validator) input(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	route, params, err := v.router.FindRoute(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	checked := r.Clone(r.Context())
	checked.Body = io.NopCloser(bytes.NewReader(body))
	checked.ContentLength = int64(len(body))
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, SkipSettingDefaults: true,
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
	}
	options.WithCustomSchemaErrorFunc(brief)
	return &openapi3filter.RequestValidationInput{Request: checked, PathParams: params, Route: route, Options: options}, nil
}

// brief leaves the whole schema out of what is reported.
func brief(err *openapi3.SchemaError) string {
	return fmt.Sprintf("/%s: %s", strings.Join(err.JSONPointer(), "/"), err.Reason)
}
