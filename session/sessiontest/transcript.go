package sessiontest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"ship/session"
)

func transcriptTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"is read from any cursor": transcriptCursor,
		"is capped":               transcriptCap,
		"refuses foreign cursors": transcriptForeign,
		"is empty":                transcriptEmpty,
	}
}

func ledgerTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"adds up":            ledgerSum,
		"many at once":       ledgerConcurrent,
		"refuses bad names":  ledgerNames,
		"refuses no amounts": ledgerAmounts,
		"reads several":      ledgerTotals,
	}
}

func (s *suite) lines(cursor string, n int) ([]string, string) {
	s.Helper()
	lines, next, err := s.Lines(s.Context(), "gh.1.1", cursor, n)
	if err != nil {
		s.Fatalf("Lines after %q: %v", cursor, err)
	}
	return lines, next
}

func (s *suite) write(lines ...string) {
	s.Helper()
	if err := s.Write(s.Context(), "gh.1.1", lines); err != nil {
		s.Fatalf("Write: %v", err)
	}
}

func transcriptCursor(s *suite) {
	s.write("a", "b", "")
	s.write("d\ne")
	s.write()
	all := []string{"a", "b", "", "d\ne"}
	if got, _ := s.lines("", 100); !slices.Equal(got, all) {
		s.Errorf("lines %q, want %q", got, all)
	}
	var got []string
	cursor := ""
	for range all {
		lines, next := s.lines(cursor, 1)
		got, cursor = append(got, lines...), next
	}
	if !slices.Equal(got, all) {
		s.Errorf("line by line %q, want %q", got, all)
	}
	if lines, next := s.lines(cursor, 100); len(lines) != 0 || next != cursor {
		s.Errorf("at the end: %q with cursor %q, want nothing and %q", lines, next, cursor)
	}
	s.write("f")
	if lines, _ := s.lines(cursor, 100); !slices.Equal(lines, []string{"f"}) {
		s.Errorf("after the end: %q, want f", lines)
	}
	if lines, _ := s.lines("", 0); len(lines) != 0 {
		s.Errorf("no lines wanted, got %q", lines)
	}
}

func transcriptCap(s *suite) {
	const written = 5000
	for i := 0; i < written; i += 100 {
		var lines []string
		for n := range 100 {
			lines = append(lines, fmt.Sprintf("line %04d", i+n))
		}
		s.write(lines...)
	}
	lines, _ := s.lines("", written)
	if len(lines) < 2000 || len(lines) > 2200 {
		s.Errorf("%d lines are kept, want about 2000", len(lines))
	}
	if last := lines[len(lines)-1]; last != "line 4999" || !slices.IsSorted(lines) {
		s.Errorf("the newest line is %q", last)
	}
}

func transcriptForeign(s *suite) {
	s.write("a")
	for _, cursor := range []string{"x", "(", "-", "+", "$", "1-2-3", " 1", "-1"} {
		if lines, _, err := s.Lines(s.Context(), "gh.1.1", cursor, 1); err == nil {
			s.Errorf("Lines after %q = %q, want an error", cursor, lines)
		}
	}
}

func transcriptEmpty(s *suite) {
	if lines, next := s.lines("", 10); len(lines) != 0 || next != "" {
		s.Errorf("Lines = %q, %q; want nothing", lines, next)
	}
}

func (s *suite) spend(account string, u session.Usage) session.Usage {
	s.Helper()
	total, err := s.Spend(s.Context(), account, u)
	if err != nil {
		s.Fatalf("Spend: %v", err)
	}
	return total
}

func ledgerSum(s *suite) {
	one := session.Usage{Calls: 1, Input: 1000, Output: 200, USD: 0.1}
	for i := 1; i <= 10; i++ {
		got := s.spend("gh.1.1:3", one)
		if got.Calls != i || got.Input != 1000*i || got.Output != 200*i {
			s.Fatalf("after %d: %+v", i, got)
		}
	}
	// Ten floats of 0.1 do not add up to 1.
	if got := s.spend("gh.1.1:3", session.Usage{}); got.USD != 1 {
		s.Errorf("ten times 0.1 USD is %v", got.USD)
	}
	if got := s.spend("gh.1.1:4", one); got != one {
		s.Errorf("another account holds %+v, want %+v", got, one)
	}
	if got := s.spend("gh.1.1:4", session.Usage{USD: -0.05}); got.USD != 0.05 {
		s.Errorf("after giving back: %v USD, want 0.05", got.USD)
	}
}

func ledgerConcurrent(s *suite) {
	const callers, each = 8, 25
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				_, err := s.Spend(s.Context(), "a", session.Usage{Calls: 1, USD: 0.000001})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
	want := session.Usage{Calls: callers * each, USD: 0.0002}
	if got := s.spend("a", session.Usage{}); got != want {
		s.Errorf("total %+v, want %+v", got, want)
	}
}

func ledgerNames(s *suite) {
	for _, name := range []string{"", "a b", "{00}", "a\n", "ä", "a/b", "a_b"} {
		if _, err := s.Spend(s.Context(), name, session.Usage{Calls: 1}); err == nil {
			s.Errorf("account %q was accepted", name)
		}
		if _, err := s.Totals(s.Context(), "a", name); err == nil {
			s.Errorf("account %q was read", name)
		}
	}
}

// ledgerTotals reads accounts of which a store may keep each elsewhere.
func ledgerTotals(s *suite) {
	var names []string
	var want []session.Usage
	for i := range 40 {
		names = append(names, fmt.Sprintf("gh.1.%d:3", i))
		want = append(want, session.Usage{Calls: i, Input: 2 * i, Output: 3 * i, USD: float64(i) / 4})
		if i > 0 { // the first is unknown
			s.spend(names[i], want[i])
		}
	}
	names, want = append(names, names[7]), append(want, want[7])
	for range 2 { // to read adds nothing
		got, err := s.Totals(s.Context(), names...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			s.Error(diff, err)
		}
	}
	if none, err := s.Totals(s.Context()); len(none) != 0 || err != nil {
		s.Errorf("no accounts have %v, %v", none, err)
	}
}

func ledgerAmounts(s *suite) {
	for _, usd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		if _, err := s.Spend(s.Context(), "a", session.Usage{USD: usd}); err == nil {
			s.Errorf("%v USD were accepted", usd)
		}
	}
}
