package session_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

// TestNewerFields: a newer release of the same version may write fields that
// this one does not know. It reads past them, wherever they are, and all else is
// as it was.
func TestNewerFields(t *testing.T) {
	t.Parallel()
	var state session.State
	fill(reflect.ValueOf(&state).Elem(), 0)
	state.V = session.StateVersion
	was, err := state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := session.DecodeState(state.ID, widen(t, reflect.TypeFor[session.State](), was))
	if err != nil {
		t.Fatal(err)
	}
	is, err := read.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(was), string(is)); diff != "" {
		t.Errorf("a state with fields of a newer release is read otherwise (-without +with):\n%s", diff)
	}

	var event, again session.Event
	fill(reflect.ValueOf(&event).Elem(), 0)
	before := encoded(t, event)
	if err := json.Unmarshal(widen(t, reflect.TypeFor[session.Event](), before), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(encoded(t, again))); diff != "" {
		t.Errorf("an event with fields of a newer release is read otherwise (-without +with):\n%s", diff)
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// widen adds a field that nobody knows to each object in b that is a struct.
func widen(t *testing.T, of reflect.Type, b []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	widenValue(of, v)
	return encoded(t, v)
}

func widenValue(of reflect.Type, v any) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			widenValue(of, item)
		}
	case map[string]any:
		widenObject(of, v)
	}
}

func widenObject(of reflect.Type, v map[string]any) {
	if of.Kind() == reflect.Map {
		for _, item := range v {
			widenValue(of.Elem(), item)
		}
		return
	}
	for _, field := range reflect.VisibleFields(of) {
		if item, there := v[jsonName(field)]; there {
			widenValue(field.Type, item)
		}
	}
	v["of_a_newer_release"] = map[string]any{"deep": []any{1, "two"}}
}

func jsonName(field reflect.StructField) string {
	for i, c := range field.Tag.Get("json") {
		if c == ',' {
			return field.Tag.Get("json")[:i]
		}
	}
	return field.Tag.Get("json")
}

// fill gives every field that can be set something that is not zero.
func fill(v reflect.Value, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, depth+1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
	default:
		fillPlain(v)
	}
}

func fillPlain(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1.5)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	}
}
