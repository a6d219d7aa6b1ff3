package main

import (
	"os"
	"syscall"
	"testing"
)

// writeScript writes a program for the shell. A process that another test is
// just starting has all files of ours open until its own program runs, and a
// program that anybody has open for writing cannot be executed ("text file
// busy"). So nothing may be started meanwhile.
func writeScript(t testing.TB, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
