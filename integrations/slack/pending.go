package slack

import (
	"context"
	"errors"
	"time"

	"ship/session"
)

var errPending = errors.New("slack: not there yet")

func (w *work) problem(_ context.Context, err error) error {
	return &session.Problem{Say: "Slack could not be reached. I keep trying.", Err: err, Again: true}
}
func (w *work) admit(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) acknowledge(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) open(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) report(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) say(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) ask(context.Context) (session.Performed, error) {
	return session.Performed{}, errPending
}
func (w *work) answer(context.Context) error { return errPending }
func (w *work) sweep(context.Context) error  { return errPending }

type Recovery struct{}

func newRecovery(*app, Config) *Recovery { return &Recovery{} }

func (*Recovery) Recover(context.Context, time.Time) (int, error) { return 0, nil }
