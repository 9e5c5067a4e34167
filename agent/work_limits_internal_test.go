package agent

import (
	"errors"
	"strings"
	"testing"
)

func TestANodeSaysWhyItRunsNoContainers(t *testing.T) {
	refused := &RunConfig{NoContainers: errors.New("crun refuses hosts with two hierarchies of cgroups")}
	if c, ok := containersRefused(refused); !ok || !c.True || c.Type != "ContainersRefused" || !strings.Contains(c.Message, "two hierarchies") {
		t.Errorf("condition %+v, %t, want the reason", c, ok)
	}
	if refused.runsContainers() {
		t.Error("the node has the label of containers")
	}
	for name, run := range map[string]*RunConfig{"containers run": {Containers: &Containers{}}, "no containers are wanted": {}, "no work": nil} {
		if c, ok := containersRefused(run); ok {
			t.Errorf("%s: condition %+v", name, c)
		}
	}
}
