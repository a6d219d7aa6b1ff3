package main

import (
	"ship/config"
	"ship/sandbox"
	"ship/sandbox/broker"
)

// validateHosts refuses rules that the broker would not understand.
func validateHosts(rules []string) error {
	if _, err := broker.ParseHosts(rules); err != nil {
		return config.Invalid("allow_hosts", err.Error(), "write hosts like registry.npmjs.org, *.example.com or example.com:8443, or the word registries")
	}
	return nil
}

// egress is what boxes may reach by name.
func (s SandboxSettings) egress(o broker.EgressObserver) (broker.Egress, error) {
	hosts, err := broker.ParseHosts(s.AllowHosts)
	return broker.Egress{Hosts: hosts, MaxBytes: s.MaxTraffic, Observer: o}, err
}

// reachable are the rules that the agent is told of.
func (s SandboxSettings) reachable() []string {
	hosts, err := broker.ParseHosts(s.AllowHosts)
	if err != nil {
		return nil // Validate has refused it
	}
	return hosts.Rules()
}

// agentEnv tells programs in a box where to go; nowhere, unless something may
// be reached.
func (s SandboxSettings) agentEnv() []string {
	if len(s.AllowHosts) == 0 {
		return nil
	}
	return broker.ProxyEnvironment(sandbox.BrokerURL)
}
