package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// samples has a document of every kind that clients create, with all that people
// write in one.
var samples = map[string]string{
	api.KindJob: `
kind: Job
metadata: {name: x, labels: {team: ml}, annotations: {note: "a: b\nc"}}
spec:
  parallelism: 2
  priority: 7
  queue: night
  template: {metadata: {labels: {role: worker}}, spec: {resources: {requests: {cpu: 500m, memory: 1Gi}}, scheduling: {gangScheduling: {minMembers: 2}}}}
`,
	api.KindAllocation: `
kind: Allocation
metadata: {name: x, labels: {team: ml}}
spec: {priorityClass: high-priority, resources: {requests: {cpu: "1", memory: 1Gi}}, scheduling: {nodeSelector: {zone: a}}}
`,
	api.KindQuotaTree: `
kind: QuotaTree
metadata: {name: x, labels: {team: ml}}
spec:
  resourceNames: [cpu]
  nodes: {root: {parent: "nil", quota: {cpu: 10}}, a: {parent: root, quota: {cpu: 4}}, b: {parent: root, quota: {cpu: 6}}}
`,
	api.KindNode: `
kind: Node
metadata: {name: x, labels: {zone: a}, annotations: {owner: ada}}
spec: {capacity: {cpu: 96000m, nvidia.com/gpu: "8", pods: "110"}, allocatable: {cpu: 94000m}, taints: [{key: team, effect: NoSchedule}], unschedulable: true}
`,
	api.KindQuotaForest:   "kind: QuotaForest\nmetadata: {name: x}\nspec: {trees: [x]}\n",
	api.KindQuotaBinding:  "kind: QuotaBinding\nmetadata: {name: x}\nspec: {groups: {x: a}, admission: queue}\n",
	api.KindTenant:        "kind: Tenant\nmetadata: {name: x}\nspec: {displayName: The team, owner: ada, contacts: [bob]}\n",
	api.KindResource:      "kind: Resource\nmetadata: {name: x}\nspec: {displayName: Licence, unit: seats, scope: cluster, rank: 20}\n",
	api.KindPriorityClass: "kind: PriorityClass\nmetadata: {name: x}\nspec: {value: 7, preemptionPolicy: Never, globalDefault: true, description: d}\n",
	api.KindQueue:         "kind: Queue\nmetadata: {name: x}\nspec: {state: Hold, order: Strict, maxRunningMembers: 4, placementPolicy: packed}\n",
	api.KindRoleBinding:   "kind: RoleBinding\nmetadata: {name: x}\nspec: {role: editor, tenant: vision, namespaces: [dev], subjects: [{kind: User, name: ada}]}\n",
	api.KindNamespace:     "kind: Namespace\nmetadata: {name: x}\nspec: {priorityCeiling: 100, admission: queue, defaultQueue: q}\n",
	api.KindResourceQuota: `
kind: ResourceQuota
metadata: {name: x, annotations: {why: "a limit"}}
spec: {hard: {cpu: "20", memory: 40Gi}, soft: {cpu: "10"}}
`,
}

// essenceOf is the part of a printed object that a person writes.
func essenceOf(t *testing.T, printed string) any {
	t.Helper()
	var o struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec any `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(printed), &o); err != nil {
		t.Fatalf("%v:\n%s", err, printed)
	}
	return o
}

// FAULTS U3: an object that get had printed could not be submitted again.
func TestWhatGetPrintsCanBeAppliedAndSubmittedAgain(t *testing.T) {
	s := newShell(t, newServer(t))
	must := func(stdin string, args ...string) string {
		t.Helper()
		code, stdout, stderr := s.run(t.Context(), stdin, args...)
		if code != ExitDone {
			t.Fatalf("muster %s: exit %d, %s", strings.Join(args, " "), code, stderr)
		}
		return stdout
	}
	must(samples[api.KindQuotaTree], "apply", "-f", "-")
	for _, k := range sdk.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			if k.Derived {
				printed := must("", "get", k.Plural, "-A", "-o", "yaml")
				if code, _, stderr := s.run(t.Context(), printed, "apply", "-f", "-"); code == ExitDone || !strings.Contains(stderr, "by themselves") {
					t.Errorf("applied: exit %d, %s", code, stderr)
				}
				return
			}
			if !k.Created {
				printed := must("", "get", k.Name, "small", "-o", "yaml")
				if got := must(printed, "apply", "-f", "-"); !strings.HasSuffix(got, " unchanged\n") {
					t.Errorf("applied as it is printed: %s", got)
				}
				return
			}
			sample, has := samples[k.Document]
			if !has {
				t.Fatalf("there is no sample of a %s", k.Document)
			}
			must(sample, "apply", "-f", "-")
			for _, output := range []string{"yaml", "json"} {
				printed := must("", "get", k.Name, "x", "-o", output)
				if got := must(printed, "apply", "-f", "-"); !strings.HasSuffix(got, " unchanged\n") {
					t.Errorf("-o %s applied as it is printed: %s", output, got)
				}
				for _, verb := range []string{"submit", "apply"} {
					must("", "delete", k.Name, "x", "--wait")
					must(printed, verb, "-f", "-")
					again := must("", "get", k.Name, "x", "-o", output)
					if diff := cmp.Diff(essenceOf(t, printed), essenceOf(t, again)); diff != "" {
						t.Errorf("-o %s, deleted, and %s (-before +after):\n%s", output, verb, diff)
					}
					if _, _, stderr := s.run(t.Context(), printed, "submit", "-f", "-"); !strings.Contains(stderr, "exists") {
						t.Errorf("submit of one that exists: %q", stderr)
					}
				}
			}
		})
	}
	list := must("", "get", "jobs,allocations", "-o", "yaml", "-l", "team=ml")
	if got := must(list, "apply", "-f", "-"); strings.Count(got, "unchanged\n") < 2 || strings.Contains(got, "configured") || strings.Contains(got, "created") {
		t.Errorf("a list applied as it is printed:\n%s", got)
	}
}

// TestADocumentWithoutThePriorityOfItsClassCanBeAppliedAgain: the server fills in the values of
// a priority class, and a document without them is no change.
func TestADocumentWithoutThePriorityOfItsClassCanBeAppliedAgain(t *testing.T) {
	for name, c := range map[string]struct{ first, then, stdout, stderr string }{
		"the default class, a job":          {"", "", " unchanged\n", ""},
		"a class by name":                   {", priorityClass: x", ", priorityClass: x", " unchanged\n", ""},
		"a class by name is left out":       {", priorityClass: x", "", " unchanged\n", ""},
		"the values as the server has them": {"", ", priorityClass: x, priority: 7", " unchanged\n", ""},
		"another number":                    {", priorityClass: x", ", priority: 8", "", "spec.priority: 7 cannot become 8"},
		"another class":                     {"", ", priorityClass: critical", "", `spec.priorityClass: "x" cannot become "critical"`},
	} {
		for kind, doc := range map[string]string{
			api.KindAllocation: "kind: Allocation\nmetadata: {name: a}\nspec: {resources: {requests: {cpu: 100m}}%s}\n",
			api.KindJob:        "kind: Job\nmetadata: {name: a}\nspec: {template: {spec: {resources: {requests: {cpu: 100m}}}}%s}\n",
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := newShell(t, newServer(t))
				if code, _, stderr := s.run(t.Context(), samples[api.KindPriorityClass]+"---\n"+fmt.Sprintf(doc, c.first), "apply", "-f", "-"); code != ExitDone {
					t.Fatal(stderr)
				}
				_, stdout, stderr := s.run(t.Context(), fmt.Sprintf(doc, c.then), "apply", "-f", "-")
				if !strings.HasSuffix(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
					t.Errorf("applied again: %q and %q, want %q and %q", stdout, stderr, c.stdout, c.stderr)
				}
			})
		}
	}
}
