package config

import (
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	secretType   = reflect.TypeFor[Secret]()
	secretsType  = reflect.TypeFor[Secrets]()
	durationType = reflect.TypeFor[time.Duration]()
)

// set gives a leaf the value that texts say: one text, or the entries of a
// list. The error names neither the key nor, for a secret, the value.
func (f *field) set(texts []string, list bool) *Problem {
	if f.isList() {
		return f.setList(texts, list)
	}
	if list {
		return &Problem{What: "is a list", Remedy: "write " + f.article()}
	}
	if p := f.setOne(f.value, strings.TrimSpace(texts[0])); p != nil {
		return p
	}
	return f.check(texts[0])
}

func (f *field) setList(texts []string, list bool) *Problem {
	if !list {
		texts = strings.FieldsFunc(texts[0], func(r rune) bool { return r == ',' || r == '\n' })
	}
	out := reflect.MakeSlice(f.value.Type(), 0, len(texts))
	for _, text := range texts {
		if text = strings.TrimSpace(text); text == "" {
			return &Problem{What: "has an empty entry", Remedy: "leave it out"}
		}
		one := reflect.New(f.value.Type().Elem()).Elem()
		if p := f.setOne(one, text); p != nil {
			return p
		}
		out = reflect.Append(out, one)
	}
	f.value.Set(out)
	return nil
}

func (f *field) setOne(v reflect.Value, text string) *Problem {
	switch {
	case v.Type() == secretType:
		v.Set(reflect.ValueOf(NewSecret(text)))
		return nil
	case v.Type() == durationType:
		return f.setDuration(v, text)
	}
	switch v.Kind() {
	case reflect.String:
		return f.setString(v, text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || text != "true" && text != "false" {
			return f.not(text, "true or false", "write one of these")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return f.setInt(v, text)
	case reflect.Float64:
		return f.setFloat(v, text)
	}
	return nil
}

// not is the Problem of a text that is not what it should be.
func (f *field) not(text, what, remedy string) *Problem {
	if f.secret {
		return &Problem{What: "is not " + what, Remedy: remedy}
	}
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return &Problem{What: fmt.Sprintf("%q is not %s", text, what), Remedy: remedy}
}

func (f *field) setDuration(v reflect.Value, text string) *Problem {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return f.not(text, "a duration", "write it like 90s, 5m or 1h")
	}
	v.SetInt(int64(d))
	return nil
}

func (f *field) setString(v reflect.Value, text string) *Problem {
	if f.is == "url" && text != "" {
		var p *Problem
		if text, p = f.address(text); p != nil {
			return p
		}
	}
	if len(f.oneOf) > 0 && !slices.Contains(f.oneOf, text) {
		p := f.not(text, "known here", "use "+strings.Join(f.oneOf, " or "))
		return p
	}
	v.SetString(text)
	return nil
}

// address checks a web address. One with a password in it is not repeated.
func (f *field) address(text string) (string, *Problem) {
	const remedy = "write it like https://ship.example.com"
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", &Problem{What: "is not a web address", Remedy: remedy}
	case u.User != nil:
		return "", &Problem{What: "holds a user or a password", Remedy: "leave that out of the address: it would be shown in logs"}
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return "", f.not(text, "a web address", remedy)
	case u.RawQuery != "", u.Fragment != "":
		return "", &Problem{What: "holds a query or a fragment", Remedy: "end the address before the ? or #"}
	}
	return strings.TrimRight(text, "/"), nil
}

func (f *field) setInt(v reflect.Value, text string) *Problem {
	n, err := strconv.ParseInt(text, 10, v.Type().Bits())
	if f.is == "size" {
		n, err = size(text)
	}
	switch {
	case err != nil && f.is == "size":
		return f.not(text, "a size", "write it like 512MiB or 2GiB")
	case err != nil:
		return f.not(text, "a whole number", "write digits only")
	}
	v.SetInt(n)
	return nil
}

func (f *field) setFloat(v reflect.Value, text string) *Problem {
	number := text
	if f.is == "usd" {
		number = strings.TrimSpace(strings.TrimSuffix(strings.ToLower(strings.TrimPrefix(text, "$")), "usd"))
	}
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) && (f.is != "usd" || x >= 0):
		v.SetFloat(x)
		return nil
	case f.is == "usd":
		return f.not(text, "an amount of US dollars", "write it like 5 or 2.50")
	}
	return f.not(text, "a number", "write it like 5 or 2.50")
}

var sizeText = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?$`)

// size reads "2GiB", and a bare number as bytes.
func size(text string) (int64, error) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, err
	}
	n *= units(m[2])
	if n >= math.MaxInt64 || n != math.Trunc(n) {
		return 0, strconv.ErrRange
	}
	return int64(n), nil
}

func units(name string) float64 {
	switch name {
	case "KiB":
		return 1 << 10
	case "MiB":
		return 1 << 20
	case "GiB":
		return 1 << 30
	case "TiB":
		return 1 << 40
	case "kB":
		return 1e3
	case "MB":
		return 1e6
	case "GB":
		return 1e9
	case "TB":
		return 1e12
	}
	return 1
}

// check holds a number to the least that is allowed.
func (f *field) check(text string) *Problem {
	if f.min == "" {
		return nil
	}
	least := field{value: reflect.New(f.value.Type()).Elem(), is: f.is}
	if p := least.setOne(least.value, f.min); p != nil {
		return &Problem{What: "has a bound that cannot be read"}
	}
	var small bool
	switch {
	case f.value.CanInt():
		small = f.value.Int() < least.value.Int()
	case f.value.CanFloat():
		small = f.value.Float() < least.value.Float()
	}
	if small {
		return &Problem{What: fmt.Sprintf("%q is too small", strings.TrimSpace(text)), Remedy: "use " + f.min + " or more"}
	}
	return nil
}
