package sandboxtest

import (
	"flag"
	"runtime"
	"strconv"
)

// Overlap lets more tests be under way than there are cores, unless the command
// line says how many: most of what tests of boxes do is to wait for other
// processes. It is for a TestMain, before the tests run.
func Overlap() error {
	flag.Parse()
	p := flag.Lookup("test.parallel")
	if p.Value.String() != strconv.Itoa(runtime.GOMAXPROCS(0)) {
		return nil
	}
	return p.Value.Set("8")
}
