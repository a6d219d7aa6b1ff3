//go:build !faults

package main

import (
	"log/slog"

	"ship/sandbox/e2b"
	"ship/session/turn"
)

// faultHook is nil: a program that is shipped cannot be told to fail. Builds
// with the tag faults can; see faults_on.go.
func faultHook(*slog.Logger) func(string) { return nil }

// faultE2B does nothing: only a stand-in for E2B is reached otherwise than E2B.
func faultE2B(*e2b.Config) {}

// faultRounds are the usual ones: only tests are in a hurry.
func faultRounds() turn.Rounds { return turn.Rounds{} }
