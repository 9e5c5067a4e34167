package agent

import (
	"strings"

	"github.com/musterd/muster/agent/rpc"
)

// workNotEnforced is the condition WorkNotEnforced: a part of the limits binds no command
// here. ok is false where all limits act, and where the agent starts nothing.
func (a *Agent) workNotEnforced() (c rpc.Condition, ok bool) {
	if a.config.Run == nil {
		return c, false
	}
	missing := a.config.Run.NotEnforced()
	if len(missing) == 0 {
		return c, false
	}
	return rpc.Condition{
		Type: "WorkNotEnforced", True: true, Reason: "LimitsDoNotAct",
		Message: "commands of jobs are not bound by: " + strings.Join(missing, ", ") + "; docs/work.md says how they would be",
	}, true
}

// containersRefused is the condition ContainersRefused: the host runs no containers, which the
// operator wants. ok is false elsewhere.
func containersRefused(run *RunConfig) (c rpc.Condition, ok bool) {
	if run == nil || run.NoContainers == nil {
		return c, false
	}
	message := "jobs with a root file system of their own go to other nodes: " + run.NoContainers.Error()
	return rpc.Condition{Type: "ContainersRefused", True: true, Reason: "HostRunsNoContainers", Message: message}, true
}
