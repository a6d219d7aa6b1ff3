package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ship/integrations/linear/lineartest/schema"
)

const small = `
scalar DateTime
scalar JSONObject
scalar JSON
enum Colour { red green }
union Pet = Cat | Dog
type Cat { name: String! lives: Int! }
type Dog { name: String! trick: String }
type Query { pet(id: ID!): Pet! pets(first: Int): PetConnection! house: House }
type PetConnection { nodes: [Cat!]! }
type House { colour: Colour! built: DateTime! tags: [String!] extra: JSON data: JSONObject }
type Mutation { feed(in: FeedInput!): House! }
input FeedInput { what: String! }
type OAuthAppWebhookPayload { action: String! pet: Pet! note: String }
`

const document = `
query Pet($id: ID!) { pet(id: $id) { __typename ... on Cat { name lives } ... on Dog { name } } }
query House { home: house { colour built tags extra data } }
query Pets { pets(first: 20) { nodes { name lives } } }
mutation Feed($what: String!) { feed(in: { what: $what }) { ...Paint } }
fragment Paint on House { colour }
`

func parse(t *testing.T) *schema.Validator {
	t.Helper()
	v, err := schema.Parse("small.graphql", small)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check compares an error with a part of its text; empty: there must be none.
func check(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	v := parse(t)
	for _, tt := range []struct{ document, operation, variables, want string }{
		{document, "Pet", `{"id":"1"}`, ""},
		{document, "House", ``, ""},
		{document, "Pet", `{}`, "must be defined"},
		{document, "Pet", `{"id":null}`, "cannot be null"},
		{document, "Pet", `{"id":["1"]}`, "cannot use"},
		{document, "Pet", `{"id":"1","more":true}`, "no variable $more"},
		{document, "Fish", `{}`, `no operation "Fish"`},
		{`query Pet { fish { name } }`, "Pet", `{}`, "fish"},
		{`mutation Feed { feed(in: { who: "x" }) { colour } }`, "Feed", `{}`, "FeedInput"},
	} {
		check(t, tt.operation+tt.variables, v.Request(tt.document, tt.operation, json.RawMessage(tt.variables)), tt.want)
	}
}

func TestResponse(t *testing.T) {
	t.Parallel()
	v := parse(t)
	const good = `"colour":"red","built":"2026-11-16T00:00:00.000Z","tags":["a"],"extra":[1],"data":{}`
	for _, tt := range []struct{ operation, data, want string }{
		{"House", `{"home":{` + good + `}}`, ""},
		{"House", `{"home":null}`, ""},
		{"House", `{}`, "data.home: is missing"},
		{"House", `{"house":{}}`, "data.home: is missing"},
		{"House", `{"home":{` + good + `,"x":1}}`, "x: was not asked for"},
		{"House", `{"home":{` + strings.Replace(good, "red", "blue", 1) + `}}`, "not one of Colour"},
		{"House", `{"home":{` + strings.Replace(good, `"red"`, "null", 1) + `}}`, "colour: is null"},
		{"House", `{"home":{` + strings.Replace(good, "2026-11-16T00:00:00.000Z", "today", 1) + `}}`, "no DateTime"},
		{"House", `{"home":{` + strings.Replace(good, "2026", "0001", 1) + `}}`, ""},
		{"House", `{"home":{` + strings.Replace(good, "2026-11-16", "0001-01-01", 1) + `}}`, "no DateTime"},
		{"House", `{"home":{` + strings.Replace(good, `["a"]`, `"a"`, 1) + `}}`, "tags: is no list"},
		{"House", `{"home":{` + strings.Replace(good, `["a"]`, `[1]`, 1) + `}}`, "tags.0: 1 is no String"},
		{"House", `{"home":{` + strings.Replace(good, `"data":{}`, `"data":[]`, 1) + `}}`, "no JSONObject"},
		{"House", `{"home":[]}`, "home: is no object"},
		{"Pet", `{"pet":{"__typename":"Dog","name":"Rex"}}`, ""},
		{"Pet", `{"pet":{"__typename":"Cat","name":"Tom"}}`, "lives: is missing"},
		{"Pet", `{"pet":{"name":"Tom","lives":9}}`, "__typename"},
		{"Feed", `{"feed":{"colour":"green"}}`, ""},
	} {
		check(t, tt.data, v.Response(document, tt.operation, json.RawMessage(tt.data)), tt.want)
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	v := parse(t)
	for body, want := range map[string]string{
		`{"action":"revoked","pet":{"name":"Rex"}}`:            "",
		`{"action":"revoked","pet":{"name":"Tom","lives":9}}`:  "",
		`{"action":"revoked","pet":{"lives":9}}`:               "none of Pet",
		`{"pet":{"name":"Rex"}}`:                               "action: is null",
		`{"action":"x","pet":{"name":"Rex"},"note":7}`:         "7 is no String",
		`{"action":"x","pet":{"name":"Rex"},"more":"of this"}`: "more: is not of OAuthAppWebhookPayload",
		`[]`: "is no object",
		`{`:  "unexpected end",
	} {
		check(t, body, v.Payload("OAuthApp", []byte(body)), want)
	}
	check(t, "unknown", v.Payload("Weather", []byte(`{}`)), `no payload is known for "Weather"`)
}

func TestCost(t *testing.T) {
	t.Parallel()
	v := parse(t)
	for operation, want := range map[string]float64{
		"House": 1.5,
		"Pets":  1 + 20*1.2,
		"Feed":  1.1,
	} {
		if got, err := v.Cost(document, operation); err != nil || got != want {
			t.Errorf("%s costs %v, want %v: %v", operation, got, want, err)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := schema.Load("no such file"); err == nil || !strings.Contains(err.Error(), "load schema: ") {
		t.Errorf("got %v", err)
	}
	if _, err := schema.Parse("x.graphql", "type {"); err == nil || !strings.Contains(err.Error(), "parse schema: ") {
		t.Errorf("got %v", err)
	}
}
