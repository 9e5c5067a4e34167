package api_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

func TestAPriorityClassIsValidatedWhole(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"all fields":                            {`{"metadata":{"name":"release"},"spec":{"value":500,"preemptionPolicy":"Never","globalDefault":true,"description":"for releases"}}`, ""},
		"the least and a built-in name":         {`{"metadata":{"name":"low"},"spec":{"value":0,"preemptionPolicy":"OwnQuota"}}`, ""},
		"the greatest":                          {`{"metadata":{"name":"x.y"},"spec":{"value":1000000000}}`, ""},
		"a class of the system as it is":        {`{"metadata":{"name":"system-critical"},"spec":{"value":1000000,"description":"ours"}}`, ""},
		"no name":                               {`{"metadata":{}}`, "metadata.name: required"},
		"a name that is no subdomain":           {`{"metadata":{"name":"Release"},"spec":{"value":1}}`, `metadata.name: "Release" is not the name of a priority class`},
		"a namespace":                           {`{"metadata":{"name":"q","namespace":"ml"}}`, "metadata.namespace"},
		"a value below 0":                       {`{"metadata":{"name":"q"},"spec":{"value":-1}}`, "spec.value: -1 is outside 0..1000000000"},
		"a value above the greatest":            {`{"metadata":{"name":"q"},"spec":{"value":1000000001}}`, "spec.value: 1000000001 is outside 0..1000000000"},
		"another value of a built-in name":      {`{"metadata":{"name":"high-priority"},"spec":{"value":7}}`, "spec.value: 7: the class high-priority is built in with the value 1000"},
		"a name of the system":                  {`{"metadata":{"name":"system-mine"},"spec":{"value":7}}`, `metadata.name: "system-mine": names that begin with system- are Muster's own`},
		"a policy that is none":                 {`{"metadata":{"name":"q"},"spec":{"preemptionPolicy":"Always"}}`, `spec.preemptionPolicy: "Always": want PreemptLowerPriority, OwnQuota or Never`},
		"a description of two lines":            {`{"metadata":{"name":"q"},"spec":{"description":"a\nb"}}`, "spec.description"},
		"two faults are both named":             {`{"metadata":{"name":"system-x"},"spec":{"preemptionPolicy":"x"}}`, "spec.preemptionPolicy"},
		"a field that is none, as in one's k8s": {`{"metadata":{"name":"q"},"value":7}`, "value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, status := api.DecodePriorityClass([]byte(c.document))
			if status == nil && c.want == "" {
				return
			}
			if status == nil || status.Code != 422 && status.Code != 400 || c.want == "" {
				t.Fatalf("got %v, want a refusal with %q", status, c.want)
			}
			said := status.Message
			for _, cause := range status.Causes {
				said += "\n" + cause.Field + ": " + cause.Message
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("got\n%s\nwant %q", said, c.want)
			}
		})
	}
}
