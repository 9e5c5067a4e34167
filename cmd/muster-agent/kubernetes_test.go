package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTheConfigurationOfTheDaemonSetIsTaken reads the ConfigMap that is shipped.
func TestTheConfigurationOfTheDaemonSetIsTaken(t *testing.T) {
	text, err := os.ReadFile("../../kubernetes/muster-agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	var m struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(first), &m); err != nil {
		t.Fatal(err)
	}
	for name, pool := range map[string]string{"as it is shipped": "pool: []", "with a pool": "pool: [GPU-8f2a4bd1-5c0e-4a7b-9d3f-1e6c2b7a9d40]"} {
		t.Run(name, func(t *testing.T) {
			config := strings.Replace(m.Data["muster-agent.yaml"], "pool: []", pool, 1)
			config = strings.Replace(config, "/etc/muster/secret/token", write(t, "token", testToken), 1)
			c, err := readOver(write(t, "agent.yaml", config))
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.check(host)
			if err != nil || (s.kubelet != nil) != (pool != "pool: []") {
				t.Errorf("the device plugin is %v, %v", s.kubelet, err)
			}
		})
	}
}
