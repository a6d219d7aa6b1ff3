// Package modeltest is a language model that is not one: a server that speaks
// the OpenAI-compatible chat protocol and answers by a script.
//
// It serves two masters. Tests drive a real coding agent with it, including
// every way in which a provider misbehaves: errors for ever, silence, streams
// that end in the middle. And `ship demo` lets a real agent do real work in a
// real repository on a machine that has no account with anyone. So that nobody
// takes the second for intelligence, every text it says carries Note.
//
// A script is a function of the conversation alone. The same conversation
// always gets the same answer, which makes repeats, restarts and retries of
// the agent visible instead of confusing.
package modeltest
