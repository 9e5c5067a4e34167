package api

import (
	"strings"
	"testing"

	"github.com/musterd/muster/resource"
)

func TestAlternatives(t *testing.T) {
	const first = `"resources":{"requests":{"cpu":"8","nvidia.com/gpu":"1"}},"scheduling":{"gpu":{"model":"H100"},"nodeSelector":{"zone":"a"}}`
	for name, c := range map[string]struct {
		spec string
		want string // "" where the document is valid
	}{
		"two A100 in place of one H100":     {first + `,"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"2"}},"gpu":{"model":"A100"}}]`, ""},
		"another zone":                      {first + `,"alternatives":[{"nodeSelector":{"zone":"b"}}]`, ""},
		"any model":                         {first + `,"alternatives":[{"gpu":{}}]`, ""},
		"none":                              {first + `,"alternatives":[]`, ""},
		"empty":                             {first + `,"alternatives":[{}]`, "spec.alternatives[0]: empty: it asks for what the specification asks for; give resources, gpu or nodeSelector"},
		"an unknown resource":               {first + `,"alternatives":[{"gpu":{}},{"resources":{"requests":{"nvidia.com/gpus":"2"}}}]`, `spec.alternatives[1].resources.requests["nvidia.com/gpus"]: unknown resource`},
		"a bad amount":                      {first + `,"alternatives":[{"resources":{"requests":{"cpu":"many"}}}]`, `spec.alternatives[0].resources.requests.cpu: quantity "many"`},
		"neither whole devices nor a share": {first + `,"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"1500m"}}}]`, `spec.alternatives[0].resources.requests["nvidia.com/gpu"]: "1500m" is neither whole devices nor a share of one`},
		"a bad link":                        {first + `,"alternatives":[{"gpu":{"link":"string"}}]`, `spec.alternatives[0].gpu.link: "string": want any, pcie-switch or nvlink`},
		"a bad label":                       {first + `,"alternatives":[{"nodeSelector":{"zone":"no blanks"}}]`, "spec.alternatives[0].nodeSelector"},
		"a model of no device":              {first + `,"alternatives":[{"resources":{"requests":{"cpu":"1"}}}]`, "spec.alternatives[0].resources.requests"},
		"too many":                          {first + `,"alternatives":[` + strings.Repeat(`{"gpu":{}},`, 7) + `{"gpu":{}}]`, "spec.alternatives: 8 entries, the limit is 7"},
	} {
		t.Run(name, func(t *testing.T) {
			_, status := DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{` + c.spec + `}}`))
			switch {
			case c.want == "" && status != nil:
				t.Errorf("it is refused: %s", status.Message)
			case c.want != "" && (status == nil || status.Code != 422 || !strings.HasPrefix(status.Message, c.want)):
				t.Errorf("%v, want 422 %s", status, c.want)
			}
		})
	}
}

// Forms keep the fields that an alternative leaves out.
func TestFormsOfASpecification(t *testing.T) {
	doc, status := DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"8","nvidia.com/gpu":"1"}},
		"scheduling":{"gpu":{"model":"H100"},"nodeSelector":{"zone":"a"}},
		"alternatives":[{"resources":{"requests":{"nvidia.com/gpu":"2"}},"gpu":{"model":"A100"}},{"nodeSelector":{"zone":"b"}}]}}`))
	if status != nil {
		t.Fatal(status)
	}
	for number, want := range []struct{ cpu, gpus, model, zone string }{
		{"8", "1", "H100", "a"}, {"", "2", "A100", "a"}, {"8", "1", "H100", "b"},
	} {
		f := doc.Spec.Form(number)
		got := struct{ cpu, gpus, model, zone string }{
			f.Resources.Requests[resource.CPU], f.Resources.Requests[resource.GPU], f.Scheduling.GPU.Model, f.Scheduling.NodeSelector["zone"],
		}
		if got != want || f.Alternatives != nil {
			t.Errorf("form %d is %+v with %d alternatives, want %+v and none", number, got, len(f.Alternatives), want)
		}
	}
	if f := doc.Spec.Form(3); f.Scheduling.GPU.Model != "H100" {
		t.Errorf("a number that no form has is the form %+v, want the specification's own", f)
	}
}
