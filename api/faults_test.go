package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/yamldoc"
)

// refusalOf decodes a document of a kind and drops the value.
func refusalOf[T any](decode func([]byte) (T, *Status)) func([]byte) *Status {
	return func(doc []byte) *Status {
		_, status := decode(doc)
		return status
	}
}

// FAULTS A12: a refusal named the first fault of a document alone.
func TestARefusalNamesAllFaultsOfADocument(t *testing.T) {
	for name, c := range map[string]struct {
		decode func([]byte) *Status
		doc    string
		code   int
		want   []string // the fields
	}{
		"an allocation": {
			refusalOf(DecodeAllocation), `{"metadata": {"name": "Web", "labels": {"a b": "c"}}, "spec": {"resources": {"requests": {"cpu": "many", "memory": "-1"}}, "ttl": "soon"}}`, 422,
			[]string{"metadata.name", `metadata.labels["a b"]`, "spec.resources.requests.cpu", "spec.resources.requests.memory", "spec.ttl"},
		},
		"an allocation that is malformed too": {
			refusalOf(DecodeAllocation), `{"metadata": {"name": 7}, "spec": {"resorces": {}, "priority": 1.5, "ttl": "soon"}}`, 400,
			[]string{"metadata.name", "spec.resorces", "spec.priority", "spec.resources.requests", "spec.ttl"},
		},
		"the scheduling of an allocation": {
			refusalOf(DecodeAllocation), `{"metadata": {"name": "web"}, "spec": {"resources": {"requests": {"cpu": 1}}, "scheduling": {"tolerations": [{"operator": "Maybe"}, {"key": "a b"}], "affinity": {"nodeAffinity": {"preferredDuringScheduling": [{"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}]}}}}}`, 422,
			[]string{
				"spec.scheduling.tolerations[0].operator", "spec.scheduling.tolerations[1].key", "spec.scheduling.affinity.nodeAffinity.preferredDuringScheduling[0].weight",
				"spec.scheduling.affinity.nodeAffinity.preferredDuringScheduling[0].preference.matchExpressions[0].values",
			},
		},
		"a job": {
			refusalOf(DecodeJob), `{"metadata": {"name": "train"}, "spec": {"parallelism": 0, "queue": "A", "template": {"spec": {"priority": 3, "resources": {"requests": {"gpu": 1}}}}}}`, 422,
			[]string{"spec.parallelism", "spec.queue", "spec.template.spec.priority", "spec.template.spec.resources.requests.gpu"},
		},
		"a node that is created": {
			refusalOf(DecodeNodeCreate), `{"metadata": {"name": "A", "labels": {"nvidia.com/gpu": "8"}}, "spec": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "2"}, "taints": [{"key": "a", "effect": "NoRun"}]}}`, 422,
			[]string{"metadata.name", `metadata.labels["nvidia.com/gpu"]`, "spec.allocatable.cpu", "spec.taints[0].effect"},
		},
		"a node that is applied": {
			refusalOf(DecodeNode), `{"kind": "Job", "metadata": {"name": "A"}, "spec": {"taints": [{"key": "a", "effect": "Zzz"}]}}`, 400,
			[]string{"kind", "metadata.name", "spec.taints[0].effect"},
		},
		"the patch of a node": {
			func(doc []byte) *Status { _, status := DecodeNodePatch("n", doc); return status },
			`{"metadata": {"labels": {"a b": "c", "nvidia.com/gpu": null}}, "spec": {"taints": [{"key": "a", "effect": "Zzz"}]}}`, 422,
			[]string{`metadata.labels["nvidia.com/gpu"]`, `metadata.labels["a b"]`, "spec.taints[0].effect"},
		},
		"the patch of a node's status": {
			func(doc []byte) *Status { _, status := DecodeNodeStatusPatch("n", doc); return status },
			`{"metadata": {"name": "m"}, "status": {"capacity": null, "allocatable": {"cpu": "many"}}}`, 422,
			[]string{"metadata.name", "status.capacity", "status.allocatable.cpu"},
		},
		"the patch of a job": {
			func(doc []byte) *Status { _, status := DecodeWorkPatch(KindJob, "n", "train", doc); return status },
			`{"metadata": {"labels": {"a b": "c", "d": "e f"}, "annotations": {"g h": "i"}}}`, 422,
			[]string{`metadata.labels["a b"]`, "metadata.labels.d", `metadata.annotations["g h"]`},
		},
		"a resource quota": {
			refusalOf(DecodeResourceQuota), `{"metadata": {"name": "few"}, "spec": {"hard": {"cpu": "many", "memory": "1"}, "soft": {"memory": "2"}, "scopes": ["Zzz"]}}`, 422,
			[]string{"spec.hard.cpu", "spec.soft.memory", "spec.scopes[0]"},
		},
		"a quota tree": {
			refusalOf(DecodeQuotaTree), `{"kind": "QuotaForest", "metadata": {"name": "a b"}, "spec": []}`, 400, []string{"kind", "metadata.name", "spec"},
		},
		"a quota forest": {
			refusalOf(DecodeQuotaForest), `{"metadata": {"name": "q", "labels": {"a b": "c"}}, "spec": {"trees": ["a", "a", "b c"]}}`, 422,
			[]string{`metadata.labels["a b"]`, "spec.trees[1]", "spec.trees[2]"},
		},
		"a quota binding": {
			refusalOf(DecodeQuotaBinding), `{"metadata": {"name": "A"}, "spec": {"forest": "a b", "admission": "maybe"}}`, 422,
			[]string{"metadata.name", "spec.forest", "spec.admission"},
		},
		"a tenant": {
			refusalOf(DecodeTenant), `{"metadata": {"name": "A"}, "spec": {"owner": "a\nb", "contacts": ["", "c"], "unsatisfiable": "maybe"}}`, 422,
			[]string{"metadata.name", "spec.owner", "spec.unsatisfiable", "spec.contacts[0]"},
		},
		"a namespace": {
			refusalOf(DecodeNamespace), `{"metadata": {"name": "A"}, "spec": {"admission": "maybe", "priorityCeiling": -1, "defaultQueue": "Q", "roleCeilings": {"viewer": 1, "editor": -1}, "limits": {"jobs": -1, "documentBytes": 2000000000}}}`, 422,
			[]string{"metadata.name", "spec.admission", "spec.priorityCeiling", "spec.roleCeilings.editor", "spec.roleCeilings.viewer", "spec.defaultQueue", "spec.limits.jobs", "spec.limits.documentBytes"},
		},
		"an access token": {
			func(doc []byte) *Status { _, _, status := DecodeAccessToken(doc); return status },
			`{"metadata": {"name": "mine", "labels": {"a": "b"}}, "spec": {"user": "", "role": "boss", "tenant": "A", "namespaces": ["B", "c"], "priorityCeiling": -1, "ttl": "soon", "description": "a\nb"}}`, 422,
			[]string{"metadata.name", "metadata.labels.a", "spec.user", "spec.role", "spec.tenant", "spec.namespaces[0]", "spec.priorityCeiling", "spec.ttl", "spec.description"},
		},
		"the rotation of a token": {
			refusalOf(DecodeRotateOptions), `{"kind": "Job", "overlap": "9000h"}`, 400, []string{"kind", "overlap"},
		},
		"a role binding": {
			refusalOf(DecodeRoleBinding), `{"metadata": {"name": "A B", "namespace": "ml"}, "spec": {"role": "tenant-admin", "subjects": [{"kind": "Robot", "name": ""}, {"kind": "Token", "name": "A"}]}}`, 422,
			[]string{"metadata.name", "metadata.namespace", "spec.tenant", "spec.subjects[0].kind", "spec.subjects[0].name", "spec.subjects[1].name"},
		},
		"a bootstrap token": {
			func(doc []byte) *Status { _, _, status := DecodeBootstrapToken(doc); return status },
			`{"metadata": {"name": "mine", "annotations": {"a": "b"}}, "spec": {"uses": 0, "ttl": "soon", "labels": {"a b": "c"}}}`, 422,
			[]string{"metadata.name", "metadata.annotations.a", "spec.nodes", "spec.uses", "spec.ttl", `spec.labels["a b"]`},
		},
		"the ban of a node": {
			func(doc []byte) *Status { _, status := DecodeNodeBan("n1", doc); return status },
			`{"kind": "Node", "metadata": {"name": "n2", "namespace": "ml", "labels": {"a": "b"}}, "spec": {"reason": "a\nb"}}`, 400,
			[]string{"kind", "metadata.name", "metadata.namespace", "metadata.labels.a", "spec.reason"},
		},
		"the certificate of an operator": {
			func(doc []byte) *Status { _, _, status := DecodeOperatorCertificate(doc); return status },
			`{"metadata": {"name": "A"}, "spec": {"ttl": "-1h"}}`, 422, []string{"metadata.name", "spec.request", "spec.ttl"},
		},
		"the options of a deletion": {
			refusalOf(DecodeDeleteOptions), `{"gracePeriodSeconds": -1, "propagationPolicy": "Orphan", "reason": "` + strings.Repeat("a", 1025) + `"}`, 422,
			[]string{"gracePeriodSeconds", "propagationPolicy", "reason"},
		},
		"a preemption": {
			refusalOf(DecodePreemption), `{"targetAllocation": "A", "gracePeriodSeconds": -1, "reason": "` + strings.Repeat("a", 2000) + `"}`, 422, []string{"targetAllocation", "gracePeriodSeconds", "reason"},
		},
		"the options of a drain": {
			refusalOf(DecodeDrainOptions), `{"gracePeriodSeconds": -1, "reason": "` + strings.Repeat("a", 2000) + `", "forse": true}`, 400, []string{"gracePeriodSeconds", "reason", "forse"},
		},
		"a bulk release": {
			refusalOf(DecodeBulkRelease), `{"gracePeriodSeconds": -1, "reason": "` + strings.Repeat("a", 2000) + `"}`, 422, []string{"labelSelector", "gracePeriodSeconds", "reason"},
		},
		"the mode of quota": {
			refusalOf(DecodeQuotaModePatch), `{"kind": "Quota", "mode": "off"}`, 400, []string{"kind", "mode"},
		},
		"the name of a quota group": {
			refusalOf(DecodeQuotaRename), `{"from": "", "to": "a b"}`, 422, []string{"from", "to"},
		},
		"the options of a reconciliation": {
			refusalOf(DecodeReconcileOptions), `{"mode": "maybe", "gracePeriodSeconds": -1}`, 422, []string{"mode", "gracePeriodSeconds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fromYAML, err := yamldoc.ToJSON([]byte(c.doc)) // JSON is YAML
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range [][]byte{[]byte(c.doc), fromYAML} {
				status := c.decode(doc)
				if status == nil || status.Code != c.code {
					t.Fatalf("got %+v, want code %d", status, c.code)
				}
				var fields []string
				for _, cause := range status.Causes {
					fields = append(fields, cause.Field)
				}
				if diff := cmp.Diff(sorted(c.want), sorted(fields)); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
				first := status.Causes[0]
				if want := first.Field + ": " + first.Message; status.Message != want {
					t.Errorf("the message is %q, the first cause %q", status.Message, want)
				}
			}
		})
	}
}

// sorted is a copy in order: YAML has no order of fields.
func sorted(fields []string) []string {
	m := map[string]bool{}
	for _, f := range fields {
		m[f] = true
	}
	return sortedKeys(m)
}

func TestTheFaultsOfADocumentAreBounded(t *testing.T) {
	var labels []string
	for i := range 1000 {
		labels = append(labels, fmt.Sprintf(`"a b %d": "c"`, i))
	}
	_, status := DecodeAllocation([]byte(`{"metadata": {"name": "A", "labels": {` + strings.Join(labels, ", ") + `}}, "spec": {"resources": {"requests": {"cpu": "many"}}}}`))
	if status == nil || len(status.Causes) != MaxFaults {
		t.Fatalf("got %d causes, want %d", len(status.Causes), MaxFaults)
	}
}

func TestARefusalIsNotChangedByJoining(t *testing.T) {
	shared := invalid("a", "is wrong")
	joined := allFaults(nil, shared, invalid("b", "is wrong too"), Errorf(400, "and all of it"))
	want := []Cause{{"a", "is wrong"}, {"b", "is wrong too"}, {"", "and all of it"}}
	if diff := cmp.Diff(want, joined.Causes); diff != "" || len(shared.Causes) != 1 || joined.Message != "a: is wrong" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if allFaults(nil, nil) != nil {
		t.Error("no refusal is a refusal")
	}
}
