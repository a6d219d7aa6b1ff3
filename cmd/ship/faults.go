//go:build !faults

package main

import "log/slog"

// faultHook is nil: a program that is shipped cannot be told to fail. Builds
// with the tag faults can; see faults_on.go.
func faultHook(*slog.Logger) func(string) { return nil }
