package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// badDocuments are refused; testdata/refusals.golden holds what is said.
var badDocuments = map[string]string{
	"allocation: 1,025 nested arrays for a name":         `{"metadata":{"name":` + strings.Repeat("[", 1025) + `}}`,
	"allocation: a GPU and a half":                       allocation(`"resources":{"requests":{"nvidia.com/gpu":"1500m"}}`),
	"allocation: a broken quantity":                      allocation(`"resources":{"requests":{"cpu":"8 cores"}}`),
	"allocation: a class that is no name":                allocation(cpu + `,"priorityClass":"Urgent!"`),
	"allocation: a duration without a unit":              allocation(cpu + `,"ttl":"7200"`),
	"allocation: a fraction as a priority":               allocation(cpu + `,"priority":1.5`),
	"allocation: a gang of four":                         allocation(cpu + `,"gangScheduling":{"minMembers":4}`),
	"allocation: a gang size in an annotation alone":     annotated(`"scheduler.example.com/gang-size":"4"`, ""),
	"allocation: a gang size that is no number":          annotated(`"scheduler.example.com/gang-size":"four"`, `,"gangScheduling":{"groupId":"g"}`),
	"allocation: a gang size unlike minMembers":          annotated(`"scheduler.example.com/gang-size":"4"`, `,"gangScheduling":{"groupId":"g","minMembers":3}`),
	"allocation: two gang sizes":                         annotated(`"scheduler.example.com/gang-size":"4","muster.io/gang-size":"5"`, `,"gangScheduling":{"groupId":"g"}`),
	"allocation: a longest wait that is no duration":     annotated(`"scheduler.example.com/max-wait":"300"`, ""),
	"allocation: a longest wait unlike the timeout":      annotated(`"muster.io/max-wait":"5m"`, `,"gangScheduling":{"groupId":"g","minMembers":3,"timeout":"301s"}`),
	"allocation: a gang of zero":                         allocation(cpu + `,"gangScheduling":{"minMembers":0}`),
	"allocation: a gang in two places":                   allocation(cpu + `,"gangScheduling":{"minMembers":1},"scheduling":{"gangScheduling":{"minMembers":1}}`),
	"allocation: a GPU model without a GPU":              allocation(cpu + `,"scheduling":{"gpu":{"model":"A100"}}`),
	"allocation: a label value with a space":             `{"metadata":{"name":"a","labels":{"app":"my app"}},"spec":{` + cpu + `}}`,
	"allocation: a label key with two slashes":           `{"metadata":{"name":"a","labels":{"a/b/c":"x"}},"spec":{` + cpu + `}}`,
	"allocation: a name in capitals":                     `{"metadata":{"name":"Training"},"spec":{` + cpu + `}}`,
	"allocation: a name of 254 characters":               `{"metadata":{"name":"` + strings.Repeat("a", 254) + `"},"spec":{` + cpu + `}}`,
	"allocation: a namespace with a dot":                 `{"metadata":{"name":"a","namespace":"a.b"},"spec":{` + cpu + `}}`,
	"allocation: a negative priority":                    allocation(cpu + `,"priority":-1`),
	"allocation: a negative quantity":                    allocation(`"resources":{"requests":{"memory":"-1Gi"}}`),
	"allocation: a pasted job":                           `{"kind":"Job","metadata":{"name":"a"},"spec":{` + cpu + `}}`,
	"allocation: a preemption policy in lower case":      allocation(cpu + `,"preemptionPolicy":"never"`),
	"allocation: a priority beyond int32":                allocation(cpu + `,"priority":2147483648`),
	"allocation: a priority beyond the greatest":         allocation(cpu + `,"priority":1000000001`),
	"allocation: a queue with a space":                   allocation(cpu + `,"queue":"gpu training"`),
	"allocation: a repeated key":                         allocation(`"resources":{"requests":{"cpu":"1","cpu":"2"}}`),
	"allocation: a request above its limit":              allocation(`"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1500m"}}`),
	"allocation: a toleration of no key":                 allocation(cpu + `,"scheduling":{"tolerations":[{"operator":"Equal","value":"x"}]}`),
	"allocation: a toleration's effect misspelt":         allocation(cpu + `,"scheduling":{"tolerations":[{"key":"k","operator":"Exists","effect":"NoRun"}]}`),
	"allocation: a toleration for less than no time":     allocation(cpu + `,"scheduling":{"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":-1}]}`),
	"allocation: a toleration for a time of any effect":  allocation(cpu + `,"scheduling":{"tolerations":[{"key":"k","operator":"Exists","tolerationSeconds":60}]}`),
	"allocation: a toleration's operator unknown":        allocation(cpu + `,"scheduling":{"tolerations":[{"key":"k","operator":"Like"}]}`),
	"allocation: a toleration with a superfluous value":  allocation(cpu + `,"scheduling":{"tolerations":[{"key":"k","operator":"Exists","value":"v"}]}`),
	"allocation: a truncated document":                   `{"metadata":{"name":"a"},"spec":{`,
	"allocation: a version of another program":           `{"apiVersion":"batch/v1","metadata":{"name":"a"},"spec":{` + cpu + `}}`,
	"allocation: a weight of 101":                        allocation(cpu + `,"scheduling":{"affinity":{"nodeAffinity":{"preferredDuringScheduling":[{"weight":101,"preference":{"matchExpressions":[{"key":"k","operator":"Exists"}]}}]}}}`),
	"allocation: an amount beyond any host":              allocation(`"resources":{"requests":{"memory":"2Pi"}}`),
	"allocation: an amount beyond 64 bits":               allocation(`"resources":{"requests":{"cpu":"9E"}}`),
	"allocation: an array":                               `[]`,
	"allocation: an expression comparing with a word":    allocation(required(`{"key":"gpu-memory","operator":"Gte","values":["much"]}`)),
	"allocation: an expression comparing with two":       allocation(required(`{"key":"gpu-memory","operator":"Gt","values":["1","2"]}`)),
	"allocation: an expression in nothing":               allocation(required(`{"key":"zone","operator":"In"}`)),
	"allocation: an expression of existence with values": allocation(required(`{"key":"zone","operator":"Exists","values":["a"]}`)),
	"allocation: an expression with a bad key":           allocation(required(`{"key":"-zone","operator":"Exists"}`)),
	"allocation: an operator nobody knows":               allocation(required(`{"key":"zone","operator":"Matches","values":["a"]}`)),
	"allocation: an unknown field":                       allocation(`"resource":{"requests":{"cpu":"1"}}`),
	"allocation: an unknown NUMA policy":                 allocation(cpu + `,"scheduling":{"numaPolicy":"strict"}`),
	"allocation: a core and a half":                      allocation(asks("muster.io/cores", "1500m")),
	"allocation: a fraction of a core beyond milli":      allocation(asks("muster.io/cores", "1.00001")),
	"allocation: half a MIG instance":                    allocation(asks("nvidia.com/mig-1g.10gb", "500m")),
	"allocation: half a huge page":                       allocation(asks("hugepages-2Mi", "3Mi")),
	"allocation: huge pages of two sizes":                allocation(asks("hugepages-2Mi", "2Mi", "hugepages-1Gi", "1Gi")),
	"allocation: huge pages of three mebibytes":          allocation(asks("hugepages-3Mi", "3Mi")),
	"allocation: huge pages in another spelling":         allocation(asks("hugepages-2048Ki", "2Mi")),
	"allocation: huge pages beyond any host":             allocation(asks("hugepages-2Mi", "2Pi")),
	"allocation: more cores than any host":               allocation(asks("muster.io/cores", "2097152")),
	"allocation: more MIG instances than any host":       allocation(asks("nvidia.com/mig-1g.10gb", "1025")),
	"allocation: MIG instances of two profiles":          allocation(asks("nvidia.com/mig-1g.10gb", "1", "nvidia.com/mig-3g.40gb", "1")),
	"allocation: a MIG profile that is none":             allocation(asks("nvidia.com/mig-large", "1")),
	"allocation: a MIG profile in another spelling":      allocation(asks("nvidia.com/mig-1g.10gb+me", "1")),
	"allocation: MIG instances and a GPU":                allocation(asks("nvidia.com/mig-1g.10gb", "1", "nvidia.com/gpu", "1")),
	"allocation: MIG instances with a link":              allocation(asks("nvidia.com/mig-1g.10gb", "2") + `,"scheduling":{"gpu":{"link":"nvlink"}}`),
	"allocation: whole cores and CPU":                    allocation(asks("muster.io/cores", "8", "cpu", "500m")),
	"allocation: more cores as a limit":                  allocation(`"resources":{"requests":{"muster.io/cores":"8"},"limits":{"muster.io/cores":"16"}}`),
	"allocation: more huge pages as a limit":             allocation(`"resources":{"requests":{"hugepages-2Mi":"1Gi"},"limits":{"hugepages-2Mi":"2Gi"}}`),
	"allocation: fewer MIG instances as a limit":         allocation(`"resources":{"requests":{"nvidia.com/mig-1g.10gb":2},"limits":{"nvidia.com/mig-1g.10gb":1}}`),
	"allocation: huge pages of another size as a limit":  allocation(`"resources":{"requests":{"hugepages-2Mi":"1Gi"},"limits":{"hugepages-1Gi":"1Gi"}}`),
	"allocation: an unknown resource":                    allocation(`"resources":{"requests":{"disk":"1"}}`),
	"allocation: affinity without a label of nodes":      allocation(cpu + `,"scheduling":{"affinity":{"podAffinity":{"requiredDuringScheduling":[{"labelSelector":{}}]}}}`),
	"allocation: affinity of a weight out of range":      allocation(cpu + `,"scheduling":{"affinity":{"podAntiAffinity":{"preferredDuringScheduling":[{"weight":101,"podAffinityTerm":{"topologyKey":"rack"}}]}}}`),
	"allocation: anti-affinity by greater labels":        allocation(cpu + `,"scheduling":{"affinity":{"podAntiAffinity":{"requiredDuringScheduling":[{"topologyKey":"rack","labelSelector":{"matchExpressions":[{"key":"age","operator":"Gt","values":["3"]}]}}]}}}`),
	"allocation: anti-affinity with 17 rules":            allocation(cpu + `,"scheduling":{"affinity":{"podAntiAffinity":{"requiredDuringScheduling":[` + strings.Repeat(`{"topologyKey":"rack"},`, 16) + `{"topologyKey":"rack"}]}}}`),
	"allocation: a selector of a label that is none":     allocation(cpu + `,"scheduling":{"affinity":{"podAffinity":{"requiredDuringScheduling":[{"topologyKey":"rack","labelSelector":{"matchLabels":{"app":"a b"}}}]}}}`),
	"allocation: no name":                                `{"metadata":{},"spec":{` + cpu + `}}`,
	"allocation: nothing":                                ``,
	"allocation: nothing asked for":                      allocation(`"resources":{}`),
	"allocation: required affinity without terms":        allocation(cpu + `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":[]}}}}`),
	"allocation: spread over a label that is none":       allocation(cpu + `,"scheduling":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a b"}]}`),
	"allocation: spread without a skew":                  allocation(cpu + `,"scheduling":{"topologySpreadConstraints":[{"topologyKey":"rack"}]}`),
	"allocation: spread that is neither":                 allocation(cpu + `,"scheduling":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"Wait"}]}`),
	"allocation: spread that is given twice":             allocation(cpu + `,"scheduling":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack"},{"maxSkew":2,"topologyKey":"rack"}]}`),
	"allocation: a term without expressions":             allocation(cpu + `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":[{"matchExpressions":[]}]}}}}`),
	"allocation: two documents":                          allocation(cpu) + allocation(cpu),
	"delete: a grace of two days":                        `{"gracePeriodSeconds":172800}`,
	"delete: a grace in words":                           `{"gracePeriodSeconds":"long"}`,
	"delete: a negative grace":                           `{"gracePeriodSeconds":-1}`,
	"delete: orphans":                                    `{"propagationPolicy":"Orphan"}`,
	"reclaim: a grace of two days":                       `{"gracePeriodSeconds":172800}`,
	"reclaim: a negative grace":                          `{"gracePeriodSeconds":-1}`,
	"reclaim: a reason":                                  `{"reason":"mine"}`,
	"job: a gang larger than the job":                    job(`"parallelism":4`, cpu+`,"scheduling":{"gangScheduling":{"minMembers":5}}`),
	"job: a name without room for member numbers":        `{"metadata":{"name":"` + strings.Repeat("a", 249) + `"},"spec":{"template":{"spec":{` + cpu + `}}}}`,
	"job: a priority in the template":                    job(`"parallelism":4`, cpu+`,"priority":5`),
	"job: a template name":                               `{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"name":"b"},"spec":{` + cpu + `}}}}`,
	"job: a negative backoff limit":                      job(`"backoffLimit":-1`, cpu),
	"job: an absurd gang":                                job(`"parallelism":1000000`, cpu),
	"job: an absurd gang beyond int32":                   job(`"parallelism":99999999999`, cpu),
	"job: a gang timeout of zero":                        job(`"parallelism":2`, cpu+`,"scheduling":{"gangScheduling":{"timeout":"0s"}}`),
	"job: no deadline at all":                            job(`"activeDeadlineSeconds":0`, cpu),
	"job: no member":                                     job(`"parallelism":0`, cpu),
	"job: no template":                                   `{"metadata":{"name":"a"},"spec":{"parallelism":2}}`,
	"job: removed before its end":                        job(`"ttlSecondsAfterFinished":-1`, cpu),
	"job: a dependency of another type":                  job(`"dependencies":[{"type":"before","job":"b"}]`, cpu),
	"job: a dependency without a type":                   job(`"dependencies":[{"job":"b"}]`, cpu),
	"job: a dependency on no job":                        job(`"dependencies":[{"type":"after"}]`, cpu),
	"job: a dependency on no name":                       job(`"dependencies":[{"type":"after","job":"B/c"}]`, cpu),
	"job: a dependency on itself":                        job(`"dependencies":[{"type":"after","job":"a"}]`, cpu),
	"job: a dependency twice":                            job(`"dependencies":[{"type":"after","job":"b"},{"type":"after","job":"b"}]`, cpu),
	"job: too many dependencies":                         job(`"dependencies":[`+strings.Repeat(`{"type":"after","job":"b"},`, 64)+`{"type":"after","job":"c"}]`, cpu),
	"job: zero completions":                              job(`"completions":0`, cpu),
	"binding: a forest of no name":                       binding("a", `"forest":"a/b"`),
	"binding: a group of nothing":                        binding("a", `"groups":{"Org":""}`),
	"binding: a group that cannot be shown":              binding("a", `"groups":{"Org":"a\u0007"}`),
	"binding: a name that is no namespace":               binding("a.b", ``),
	"binding: a namespace":                               `{"metadata":{"name":"a","namespace":"a"},"spec":{}}`,
	"binding: a tree of no name":                         binding("a", `"groups":{"Org tree":"x"}`),
	"binding: admission nobody knows":                    binding("a", `"admission":"maybe"`),
	"binding: no name":                                   `{"spec":{}}`,
	"forest: a name with a slash":                        forest("a/b", `"trees":["x"]`),
	"forest: a tree twice":                               forest("f", `"trees":["x","y","x"]`),
	"forest: a tree with a space":                        forest("f", `"trees":["x y"]`),
	"forest: no trees":                                   forest("f", `"trees":[]`),
	"forest: of another kind":                            `{"kind":"QuotaTree","metadata":{"name":"f"},"spec":{"trees":["x"]}}`,
	"forest: 257 trees":                                  forest("f", `"trees":["x"`+strings.Repeat(`,"x"`, 256)+`]`),
	"allocation: a group of nothing":                     allocation(cpu + `,"quota":{"groups":{"Org":""}}`),
	"job: a tree with a slash":                           job(`"parallelism":2`, cpu+`,"quota":{"groups":{"a/b":"x"}}`),
	"quota: a core and a half":                           quota(`"hard":{"muster.io/cores":"1500m"}`),
	"quota: a fraction of a service":                     quota(`"hard":{"services":"1e-1"}`),
	"quota: a limit in words":                            quota(`"hard":{"cpu":"all"}`),
	"quota: a misspelt profile":                          quota(`"hard":{"nvidia.com/mig-1g.10gb+me":"1"}`),
	"quota: a negative limit":                            quota(`"hard":{"memory":"-1Gi"}`),
	"quota: a resource that is no name":                  quota(`"hard":{"my pods":"1"}`),
	"quota: a scope nobody knows":                        quota(`"scopes":["BestEffort"]`),
	"quota: a scope that needs an operator":              quota(`"scopes":["PriorityClass"]`),
	"quota: a selector of nothing":                       quota(selector(`"scopeName":"PriorityClass","operator":"In"`)),
	"quota: a selector of existence with values":         quota(selector(`"scopeName":"PriorityClass","operator":"Exists","values":["normal"]`)),
	"quota: a selector's operator unknown":               quota(selector(`"scopeName":"PriorityClass","operator":"Like","values":["normal"]`)),
	"quota: a selector's scope unknown":                  quota(selector(`"scopeName":"BestEffort","operator":"Exists"`)),
	"quota: a selector's value that is no class":         quota(selector(`"scopeName":"PriorityClass","operator":"In","values":["normal","High"]`)),
	"quota: a deadline within":                           quota(selector(`"scopeName":"Terminating","operator":"In","values":["x"]`)),
	"quota: contradictory scopes":                        quota(`"scopes":["NotTerminating","NotTerminating","Terminating"]`),
	"quota: half a pod":                                  quota(`"hard":{"pods":"500m"}`),
	"quota: more soft than hard":                         quota(`"hard":{"cpu":"10","pods":5},"soft":{"cpu":"10","pods":6}`),
	"quota: no name":                                     `{"metadata":{},"spec":{}}`,
	"quota: scope and selector contradict":               quota(`"scopes":["NotTerminating"],` + selector(`"scopeName":"Terminating","operator":"Exists"`)),
	"quota: the same resource twice":                     quota(`"hard":{"cpu":"1","cpu":"2"}`),
	"tree: a key twice":                                  `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{"A":{},"A":{}}}}`,
	"tree: a list for a spec":                            `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":[]}`,
	"tree: a name with a space":                          `{"metadata":{"name":"Test Tree"},"spec":{}}`,
	"tree: a namespace":                                  `{"metadata":{"name":"T","namespace":"a"},"spec":{}}`,
	"tree: a trailing comma":                             `{"metadata":{"name":"T"},"spec":{"nodes":{},}}`,
	"tree: a word":                                       `{"metadata":{"name":"T"},"spec":{"nodes":yes}}`,
	"tree: no spec":                                      `{"metadata":{"name":"T"}}`,
	"tree: too deep":                                     `{"metadata":{"name":"T"},"spec":{"x":` + strings.Repeat("[", 40) + `}}`,
	"tree: an unknown field":                             `{"metadata":{"name":"T","owner":"me"},"spec":{}}`,
	"node: another name":                                 `{"metadata":{"name":"n2","labels":{"a":"b"}}}`,
	"node: another kind":                                 `{"kind":"Job","spec":{"unschedulable":true}}`,
	"node: a reserved label":                             `{"metadata":{"labels":{"kubernetes.io/hostname":"n2"}}}`,
	"node: a reserved label taken away":                  `{"metadata":{"labels":{"muster.dev/node":null}}}`,
	"node: a reserved label of a device":                 `{"metadata":{"labels":{"nvidia.com/gpu.product":"H100"}}}`,
	"node: a label that is no key":                       `{"metadata":{"labels":{"-zone":"a"}}}`,
	"node: a label that is no value":                     `{"metadata":{"labels":{"zone":"a b"}}}`,
	"node: a label that is a number":                     `{"metadata":{"labels":{"zone":1}}}`,
	"node: too many labels":                              `{"metadata":{"labels":{` + many(MaxLabels+1, `"k%d":"v"`) + `}}}`,
	"node: an annotation that is no key":                 `{"metadata":{"annotations":{"a b":"x"}}}`,
	"node: annotations too large":                        `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 256<<10) + `"}}}`,
	"node: a taint without an effect":                    `{"spec":{"taints":[{"key":"a"}]}}`,
	"node: a taint with another effect":                  `{"spec":{"taints":[{"key":"a","effect":"Never"}]}}`,
	"node: a taint without a key":                        `{"spec":{"taints":[{"key":"","effect":"NoSchedule"}]}}`,
	"node: a taint whose value is no label":              `{"spec":{"taints":[{"key":"a","value":"x y","effect":"NoSchedule"}]}}`,
	"node: a taint twice":                                `{"spec":{"taints":[{"key":"a","value":"1","effect":"NoSchedule"},{"key":"a","value":"2","effect":"NoSchedule"}]}}`,
	"node: too many taints":                              `{"spec":{"taints":[` + many(MaxNodeTaints+1, `{"key":"k%d","effect":"NoSchedule"}`) + `]}}`,
	"node: its status":                                   `{"status":{"phase":"Ready"}}`,
	"node: its capacity":                                 `{"spec":{"capacity":{"cpu":"64"}}}`,
	"approve: an unknown field":                          `{"capacity":{"cpu":"64"}}`,
	"token: a reserved label":                            `{"spec":{"nodes":"gpu-*","labels":{"muster.dev/x":"y"}}}`,
	"token: a label that is no value":                    `{"spec":{"nodes":"gpu-*","labels":{"zone":"a b"}}}`,
	"node: a patch of nothing":                           `{"spec":{}}`,
}

func decodeAs(kind, doc string) *Status {
	var status *Status
	switch kind {
	case "allocation":
		_, status = DecodeAllocation([]byte(doc))
	case "job":
		_, status = DecodeJob([]byte(doc))
	case "delete":
		_, status = DecodeDeleteOptions([]byte(doc))
	case "reclaim":
		_, status = DecodeReclaimOptions([]byte(doc))
	case "quota":
		_, status = DecodeResourceQuota([]byte(doc))
	case "tree":
		_, status = DecodeQuotaTree([]byte(doc))
	case "forest":
		_, status = DecodeQuotaForest([]byte(doc))
	case "binding":
		_, status = DecodeQuotaBinding([]byte(doc))
	case "node":
		_, status = DecodeNodePatch("n1", []byte(doc))
	case "approve":
		_, status = DecodeApproveOptions([]byte(doc))
	case "token":
		_, _, status = DecodeBootstrapToken([]byte(doc))
	}
	return status
}

func TestRefusals(t *testing.T) {
	var got strings.Builder
	for _, name := range sortedKeys(badDocuments) {
		kind, _, _ := strings.Cut(name, ":")
		if name == "allocation: nothing" {
			kind = "allocation"
		}
		status := decodeAs(kind, badDocuments[name])
		if status == nil {
			t.Errorf("%s: accepted %s", name, badDocuments[name])
			continue
		}
		fmt.Fprintf(&got, "%s\n\t%d %s\n", name, status.Code, status.Message)
	}
	path := filepath.Join("testdata", "refusals.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
