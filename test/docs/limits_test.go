package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// limit is a command that shows a limit of the README: its output has want, and does not
// have never.
type limit struct{ command, want, never string }

// limitsShown are the limits of the README by their titles in bold. They are shown one
// after the other on a cluster of four simulated DGX A100.
var limitsShown = map[string]limit{
	"Without TLS loopback only": {
		command: `(umask 077; echo 0123456789abcdef0123 >t; echo 3210fedcba9876543210 >a)
for at in rest-listen grpc-listen serf-bind capacity-bind; do bin/muster-coordinator --id c --data-dir $PWD/c --token-file t --admin-token-file a --$at 192.0.2.1:1 2>&1 || true; done
for at in listen metrics-listen serf-bind capacity-bind; do bin/muster-agent --node-id n --data-dir $PWD/n --token-file t --$at 192.0.2.1:1 2>&1 || true; done`,
		want: `(?s)(not on the loopback interface.*){8}`,
	},
	"A dead host keeps its devices until its death is confirmed": {
		command: `bin/muster-agent --help | grep -e --assume-dead-after`,
		want:    `0 is off`, never: `default [1-9]`,
	},
	"No fair share over time": {
		command: `bin/muster fairshare 2>&1 || true; bin/muster explain quotatree --recursive; bin/muster explain queue --recursive`,
		want:    `unknown command "fairshare"`, never: `(?i)decay|half.?life|weight`,
	},
	"No backfill calendar": {
		command: `bin/muster submit -f examples/gpu-share.yaml --wait
bin/muster submit -f examples/gang.yaml
bin/muster submit -f examples/cpu.yaml --wait -o name
bin/muster get job gang -o json`,
		want: `(?s)allocation/cpu.*"phase": "Queued"`, never: `estimatedStartTime`,
	},
	"No partitioning": {
		command: manifest(`{kind: Allocation, metadata: {name: mig}, spec: {resources: {requests: {nvidia.com/mig-1g.10gb: 1}}}}`) + `bin/muster why mig`,
		want:    `Never on the nodes registered now`,
	},
	"Commands of jobs are off until an operator names their users": {
		command: `bin/muster run -- true 2>&1 || true`,
		want:    `(?s)starts no processes.*startsWork.*work\.users.*--run-as`,
	},
	"A share of a GPU is a promise": {
		command: `bin/muster get allocation gpu-share; cat $(grep -l CUDA_VISIBLE_DEVICES=GPU- data/nodes/*/assignments/*.env)`,
		want:    `(?s)500m.*CUDA_VISIBLE_DEVICES=GPU-[0-9a-f-]{36}\n`, never: `MPS|LIMIT`,
	},
	"Kubernetes by the device plugin": {
		command: `echo 'kubelet: {dynamicResourceAllocation: true}' >k.yaml; bin/muster-agent --config k.yaml 2>&1 || true`,
		want:    `(?i)k\.yaml.*kubelet\.dynamicResourceAllocation.*unknown|unknown.*kubelet\.dynamicResourceAllocation`,
	},
	"Refused, not ignored": {
		command: manifest(`{kind: Allocation, metadata: {name: red}, spec: {colour: red, resources: {requests: {cpu: 1}}}}`),
		want:    `spec\.colour: unknown field`,
	},
	"Recorded, not acted on": {
		command: manifest(`{kind: Allocation, metadata: {name: limits}, spec: {resources: {requests: {cpu: 1}, limits: {cpu: 2}}}}`),
		want:    `(?s)Warning: recorded but not acted on.*spec\.resources\.limits`,
	},
	"GPUs from NVIDIA only": {
		command: manifest(`{kind: Allocation, metadata: {name: amd}, spec: {resources: {requests: {amd.com/gpu: 1}}}}`),
		want:    `unknown resource`,
	},
}

// manifest submits a document; the command goes on where it is refused.
func manifest(document string) string {
	return "echo '" + document + "' | bin/muster submit -f - 2>&1 || true\n"
}

// limitsOfTheReadme are the titles in bold of "Limits of this version", in their order.
func limitsOfTheReadme(t *testing.T) (titles []string) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, filepath.Join(root, "README.md")), "\n## Limits of this version\n")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal(`README.md has no section "Limits of this version"`)
	}
	title := regexp.MustCompile(`^- \*\*([^*]+?)\.?\*\*`)
	for line := range strings.Lines(section) {
		if m := title.FindStringSubmatch(line); m != nil {
			titles = append(titles, m[1])
		} else if strings.HasPrefix(line, "- ") {
			t.Errorf("README.md: the limit %q has no title in bold", strings.TrimSpace(line))
		}
	}
	return titles
}

// TestEachLimitOfTheReadmeHasACommand: the README and this file have the same limits.
func TestEachLimitOfTheReadmeHasACommand(t *testing.T) {
	listed := map[string]bool{}
	for _, title := range limitsOfTheReadme(t) {
		if listed[title] = true; limitsShown[title] == (limit{}) {
			t.Errorf("README.md has the limit %q without a command that shows it: add the command to limitsShown", title)
		}
	}
	for title := range limitsShown {
		if !listed[title] {
			t.Errorf("limitsShown has %q, which is no limit of README.md: take it out", title)
		}
	}
}

// TestLimitsOfTheReadmeHold shows each limit on a cluster. A limit that was lifted fails.
func TestLimitsOfTheReadmeHold(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a cluster")
	}
	t.Parallel()
	muster, err := exec.LookPath("muster")
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, filepath.Dir(muster))
	s.run(step{command: "bin/muster dev --nodes 4 --profile dgx-a100 --data-dir data"})
	for _, title := range limitsOfTheReadme(t) {
		l := limitsShown[title]
		code, output := s.bashRuns(l.command)
		found := regexp.MustCompile(l.want).MatchString(output)
		if code != 0 || !found || l.never != "" && regexp.MustCompile(l.never).MatchString(output) {
			t.Errorf("README.md says %q. The commands\n%s\nend with %d and print\n%s\nwant %s, and nothing of %q. If the limit was lifted, take it out of README.md, docs/open.md and limitsShown", title, l.command, code, output, l.want, l.never)
		}
	}
	s.end()
}
