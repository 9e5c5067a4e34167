package reference

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

func TestEveryFieldHasItsText(t *testing.T) {
	for _, k := range Kinds() {
		checkText(t, k.Name, k.Field)
		every(k.Fields, func(f Field) {
			at := k.Name + "." + f.Path
			checkText(t, at, f)
			switch {
			case f.Fields != nil:
			case f.Example == "" && f.Values == nil:
				t.Errorf("%s has no example: add a tag example:\"…\" or oneof:\"…\" to the field", at)
			case f.Example != "" && f.Values != nil && !slices.Contains(f.Values, f.Example):
				t.Errorf("%s has the example %q and takes %q", at, f.Example, f.Values)
			}
			if f.Type == "integer" && f.Unit == "" && strings.HasSuffix(f.Name, "Seconds") {
				t.Errorf("%s has no unit", at)
			}
			if f.Example != "" {
				parsed(t, f, f.Example)
			}
		})
	}
}

// clumsy are turns of phrase that docs/words.md and the house style ban.
var clumsy = regexp.MustCompile(`(?i)\b(what|who|whom|told|said|lets go|is known to|one that)\b`)

func checkText(t *testing.T, at string, f Field) {
	t.Helper()
	switch {
	case f.Text == "":
		t.Errorf("%s has no text: write a comment above the field in package api, then run make reference", at)
	case !strings.HasSuffix(f.Text, "."):
		t.Errorf("%s: the text is no sentence: %q", at, f.Text)
	case clumsy.MatchString(f.Text):
		t.Errorf("%s: %q says %q; name the subject", at, f.Text, clumsy.FindString(f.Text))
	}
}

// effective are the values that the code takes for fields that are left out.
func effective(t *testing.T) map[string]string {
	grace := strconv.Itoa(lead.DefaultGrace)
	priority := api.PriorityOf(nil, "")
	numa, err := resource.ParseNUMAPolicy("")
	if err != nil {
		t.Fatal(err)
	}
	link, err := resource.ParseLinkRequirement("")
	if err != nil {
		t.Fatal(err)
	}
	three := int32(3)
	gang := &api.Job{Spec: api.JobSpec{Parallelism: &three, Template: api.Template{Spec: api.AllocationSpec{GangScheduling: &api.GangScheduling{}}}}}
	minMembers := "spec.parallelism"
	if first, _, _ := api.JobUnits(gang); first != int(three) {
		minMembers = strconv.Itoa(first)
	}
	all := map[string]string{
		"Job.spec.parallelism":                  strconv.Itoa(new(api.Job).Members()),
		"Job.spec.ttlSecondsAfterFinished":      strconv.Itoa(int(life.KeptAfterEnd.Seconds())),
		"Job.spec.backoffLimit":                 strconv.Itoa(life.DefaultBackoffLimit),
		"Job.spec.onMemberFailure":              string(life.Restart),
		"Job.spec.onMemberLost":                 "Restart",
		"BootstrapToken.spec.ttl":               short(enroll.DefaultTokenTTL),
		"BootstrapToken.spec.uses":              "1",
		"RotateOptions.overlap":                 short(api.DefaultOverlap),
		"OperatorCertificate.spec.ttl":          short(enroll.DefaultOperatorTTL),
		"QuotaTree.spec.resourceNames":          defaultResources(),
		"QuotaTree.spec.nodes.parent":           "nil",
		"QuotaBinding.spec.admission":           "reject",
		"PreemptionRequest.reason":              "evicted by an operator",
		"DrainOptions.reason":                   "node NAME is drained",
		"ReconcileOptions.gracePeriodSeconds":   grace,
		"ReclaimOptions.gracePeriodSeconds":     grace,
		"DeleteOptions.gracePeriodSeconds":      grace,
		"DeleteOptions.propagationPolicy":       "Foreground",
		"BulkReleaseOptions.gracePeriodSeconds": grace,
		"DrainOptions.gracePeriodSeconds":       grace,
		"PreemptionRequest.gracePeriodSeconds":  grace,
		"Namespace.spec.admission":              "reject",
		"Queue.spec.state":                      api.QueueOpen,
		"Queue.spec.order":                      api.QueueBestEffort,
	}
	for _, at := range []string{"Job.spec.", "Allocation.spec.", "Job.spec.template.spec."} {
		all[at+"priority"], all[at+"queue"] = strconv.Itoa(int(priority)), api.DefaultQueue
	}
	below, length, then := api.NamespaceIdle{}.Rule()
	all["Namespace.spec.idle.below"], all["Namespace.spec.idle.then"] = strconv.Itoa(int(below)), then
	all["Namespace.spec.idle.for"] = strings.TrimSuffix(length.String(), "0m0s")
	all["Job.spec.members.gpu.link"] = link.String()
	for _, at := range []string{"Allocation.spec.", "Job.spec.template.spec."} {
		all[at+"scheduling.numaPolicy"], all[at+"scheduling.gpu.link"] = numa.String(), link.String()
		all[at+"alternatives.gpu.link"] = link.String()
		all[at+"signalBefore"] = strconv.Itoa(int(api.DefaultSignalBefore.Seconds())) + "s"
		all[at+"gangScheduling.minMembers"], all[at+"scheduling.gangScheduling.minMembers"] = minMembers, minMembers
		all[at+"gangScheduling.topology.whenUnsatisfiable"], all[at+"scheduling.gangScheduling.topology.whenUnsatisfiable"] = api.DoNotSchedule, api.DoNotSchedule
		all[at+"scheduling.tolerations.operator"] = "Equal"
		all[at+"scheduling.topologySpreadConstraints.whenUnsatisfiable"] = api.DoNotSchedule
	}
	return all
}

// defaultResources are the resources of a tree that names none.
func defaultResources() string {
	var names []string
	for _, name := range quota.DefaultResources() {
		names = append(names, string(name))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func TestDefaultsAreThoseOfTheCode(t *testing.T) {
	known := effective(t)
	for _, k := range Kinds() {
		every(k.Fields, func(f Field) {
			at := k.Name + "." + f.Path
			want, ok := known[at]
			switch {
			case f.Default == "":
				if ok {
					t.Errorf("%s has the default %s in the code and none in its tags", at, want)
				}
				return
			case ok:
			case f.Name == "apiVersion":
				want = api.APIVersion
			case f.Name == "kind":
				want = k.Name
			case f.Type == "boolean":
				want = "false"
			case f.Type == "integer":
				want = "0"
			default:
				t.Errorf("%s has the default %q and effective() does not know it: add the value that the code takes", at, f.Default)
				return
			}
			if f.Default != want {
				t.Errorf("%s has the default %q, the code takes %q", at, f.Default, want)
			}
		})
	}
}

// A toleration without an operator is read as one with Equal: it needs a key.
func TestATolerationWithoutAnOperatorComparesValues(t *testing.T) {
	for operator, want := range map[string]string{"": "required unless the operator is Exists", "Equal": "required unless the operator is Exists", "Exists": ""} {
		doc := fmt.Sprintf(`{"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"cpu": 1}}, "scheduling": {"tolerations": [{"operator": %q}]}}}`, operator)
		_, status := api.DecodeAllocation([]byte(doc))
		if said := fmt.Sprint(status); want == "" && status != nil || want != "" && !strings.Contains(said, want) {
			t.Errorf("operator %q: %s, want %q", operator, said, want)
		}
	}
}

func TestRecordedFieldsAreThoseThatTheServerWarnsOf(t *testing.T) {
	for _, k := range Kinds() {
		var fields []string
		doc, err := json.Marshal(example(t, k))
		if err != nil {
			t.Fatal(err)
		}
		switch k.Name {
		case "Job":
			j, status := api.DecodeJob(doc)
			if status != nil {
				t.Fatal(status)
			}
			fields = j.RecordedOnly()
		case "Allocation":
			a, status := api.DecodeAllocation(doc)
			if status != nil {
				t.Fatal(status)
			}
			fields = a.RecordedOnly()
		}
		every(k.Fields, func(f Field) {
			if slices.Contains(leftOut[k.Name], f.Path) || partOf(leftOut[k.Name], f.Path) {
				return
			}
			if got := slices.Contains(fields, f.Path); got != f.Recorded {
				t.Errorf("%s.%s: recorded only: %t in its tags, %t in the server's warning %q", k.Name, f.Path, f.Recorded, got, fields)
			}
		})
	}
}
