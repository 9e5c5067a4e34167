package series

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The examples of docs/metrics.md are well formed, and name series that there are.
func TestTheExamplesOfMonitoringNameSeriesThatThereAre(t *testing.T) {
	names := map[string]bool{}
	for _, s := range slices.Concat(Coordinator, Cluster, Agent) {
		names[s.Name] = true
	}
	folder := filepath.Join("..", "..", "..", "examples", "monitoring")
	for _, file := range []string{"alerts.yml", "dashboard.json", "prometheus.yml"} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := yaml.UnmarshalStrict(text, &any); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		found := regexp.MustCompile(`muster_[a-z_]+`).FindAllString(string(text), -1)
		if len(found) == 0 && file != "prometheus.yml" {
			t.Errorf("%s names no series", file)
		}
		for _, name := range found {
			if !names[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s names %s, which nobody shows", file, name)
			}
		}
	}
}
