package lifecycle_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ship/sandbox/lifecycle"
)

// TestABoxIsKeptWhole: each field that there is or will be.
func TestABoxIsKeptWhole(t *testing.T) {
	t.Parallel()
	var full lifecycle.Box
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Date(2026, 3, 2, 9, i, 0, 7e6, time.UTC)))
		case bool:
			f.SetBool(true)
		case string, lifecycle.State:
			f.SetString("text")
		default:
			f.SetInt(int64(i) + 1)
		}
	}
	for _, b := range []lifecycle.Box{full, {}, {State: lifecycle.Idle, Since: full.Since}} {
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var back lifecycle.Box
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, back); diff != "" {
			t.Errorf("%s (-kept +read):\n%s", text, diff)
		}
	}
	if err := json.Unmarshal([]byte(`{"at":"monday"}`), &full); err == nil {
		t.Error("a time that is none is read")
	}
}

func FuzzReadBox(f *testing.F) {
	for _, text := range []string{`{}`, `{"st":"idle","at":1795258187898,"te":1,"m":1}`, `{"at":-9223372036854775808}`, `[]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var b, again lifecycle.Box
		if json.Unmarshal(text, &b) != nil {
			return
		}
		kept, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(kept, &again); err != nil || again != b {
			t.Errorf("%s is read as %+v, then as %+v, %v", text, b, again, err)
		}
	})
}
