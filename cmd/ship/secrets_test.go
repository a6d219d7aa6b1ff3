package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"ship/config"
)

// TestEverySecretIsKnown: what a setting holds that is a secret is taken out of
// texts, whatever section it is in.
func TestEverySecretIsKnown(t *testing.T) {
	t.Parallel()
	s := Settings{Models: map[string]ModelProvider{"openai": {}}}
	var all []string
	fill(reflect.ValueOf(&s).Elem(), &all)
	if len(all) < 10 {
		t.Fatalf("only %d settings are secrets", len(all))
	}
	known := s.secrets()
	for _, secret := range all {
		if !slices.Contains(known, secret) {
			t.Errorf("%s is not among what is redacted", secret)
		}
	}
}

// fill gives each secret a text of its own.
func fill(v reflect.Value, all *[]string) {
	text := func() string {
		*all = append(*all, fmt.Sprintf("secret number %d", len(*all)))
		return (*all)[len(*all)-1]
	}
	switch v.Interface().(type) {
	case config.Secret:
		v.Set(reflect.ValueOf(config.NewSecret(text())))
		return
	case config.Secrets:
		v.Set(reflect.ValueOf(config.NewSecrets(text(), text())))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), all)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			fill(one, all)
			v.SetMapIndex(key, one)
		}
	}
}
