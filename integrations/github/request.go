package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"
)

// call sends one request and decodes the answer, if it is wanted.
func (in *installation) call(ctx context.Context, method, path string, body, into any) (*github.Response, error) {
	req, err := in.rest.NewRequest(method, path, body)
	if err != nil {
		return nil, err
	}
	return in.rest.Do(ctx, req, into)
}

// search asks for what GitHub allows little of.
func (in *installation) search(ctx context.Context, path string, into any) error {
	req, err := in.searching.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	_, err = in.searching.Do(ctx, req, into)
	return err
}

// create sends a request that makes something people see, in its turn.
func (in *installation) create(ctx context.Context, path string, body, into any) error {
	if err := in.pace.wait(ctx); err != nil {
		return err
	}
	_, err := in.call(ctx, http.MethodPost, path, body, into)
	return err
}

// pages visits every item of a list, page by page, until visit has enough.
func pages[T any](ctx context.Context, in *installation, path string, visit func(T) (more bool)) error {
	return listPages(ctx, in, path, func(items []T) bool {
		for _, item := range items {
			if !visit(item) {
				return false
			}
		}
		return true
	})
}

func listPages[T any](ctx context.Context, in *installation, path string, visit func([]T) bool) error {
	for page := 1; page != 0; {
		var items []T
		resp, err := in.call(ctx, http.MethodGet, withQuery(path, page), nil, &items)
		if err != nil {
			return err
		}
		if !visit(items) {
			return nil
		}
		page = resp.NextPage
	}
	return nil
}

// withQuery asks for a page of a hundred, the most there is.
func withQuery(path string, page int) string {
	base, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = url.Values{} // unreachable: the paths are ours
	}
	values.Set("per_page", "100")
	values.Set("page", strconv.Itoa(page))
	return base + "?" + values.Encode()
}

// gone tells whether an answer says that there is no such thing.
func gone(err error) bool {
	code := refused(err)
	return code == http.StatusNotFound || code == http.StatusGone
}

// says tells whether a refusal (422) contains some words.
func says(err error, words string) bool {
	var e *github.ErrorResponse
	if !errors.As(err, &e) {
		return false
	}
	all := e.Message
	for _, detail := range e.Errors {
		all += " " + detail.Message + " " + detail.Code
	}
	return strings.Contains(strings.ToLower(all), strings.ToLower(words))
}
