package resource_test

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

func TestReasonsAreWrittenWithUnits(t *testing.T) {
	for name, c := range map[string]struct {
		reason resource.Reason
		want   string
	}{
		"GPUs, none of which is free": {
			resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 2000},
			`{"code":"Insufficient","resource":"nvidia.com/gpu","want":"2","have":"0","short":"2"}`,
		},
		"memory": {
			resource.Reason{Code: resource.ReasonInsufficient, Resource: resource.Memory, Want: 1 << 30, Have: 512 << 20, Detail: "d"},
			`{"code":"Insufficient","resource":"memory","want":"1Gi","have":"512Mi","short":"512Mi","detail":"d"}`,
		},
		"parts of a CPU": {
			resource.Reason{Code: resource.ReasonQuota, Resource: resource.CPU, Want: 1500, Have: 1000},
			`{"code":"Quota","resource":"cpu","want":"1500m","have":"1","short":"500m"}`,
		},
		"nothing is short": {
			resource.Reason{Code: resource.ReasonLink, Resource: resource.GPU, Want: 2000, Have: 2000},
			`{"code":"GPULink","resource":"nvidia.com/gpu","want":"2","have":"2","short":"0"}`,
		},
		"more is charged than the limit": {
			resource.Reason{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 1000, Have: -1500},
			`{"code":"Quota","resource":"nvidia.com/gpu","want":"1","have":"-1500m","short":"2500m"}`,
		},
		"no amount": {resource.Reason{Code: resource.ReasonTaint, Detail: "d"}, `{"code":"Taint","detail":"d"}`},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := json.Marshal(c.reason)
			if err != nil || string(doc) != c.want {
				t.Errorf("written %s, want %s (%v)", doc, c.want, err)
			}
		})
	}
}

func TestWrittenReasonsAreReadBack(t *testing.T) {
	amounts := rapid.OneOf(rapid.Int64Range(-5000, 5000), rapid.Int64Range(0, 1<<50), rapid.Just(int64(math.MaxInt64)))
	names := rapid.SampledFrom([]resource.Name{resource.GPU, resource.CPU, resource.Memory, resource.Cores, resource.Hugepages(2 << 20)})
	rapid.Check(t, func(t *rapid.T) {
		r := resource.Reason{Code: resource.ReasonQuota, Resource: names.Draw(t, "resource"), Want: amounts.Draw(t, "want"), Have: amounts.Draw(t, "have")}
		doc, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got resource.Reason
		if err := json.Unmarshal(doc, &got); err != nil || got != r {
			t.Fatalf("%+v is written %s and read %+v (%v)", r, doc, got, err)
		}
	})
}

func FuzzReadReason(f *testing.F) {
	f.Add([]byte(`{"code":"Insufficient","resource":"memory","want":"1Gi","have":"512Mi"}`))
	f.Add([]byte(`{"code":"Quota","resource":"cpu","want":"unlimited","have":"-5"}`))
	f.Add([]byte(`{"code":"Quota","resource":"cpu","want":"-"}`))
	f.Add([]byte(`{"want":5}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var r resource.Reason
		if json.Unmarshal(doc, &r) != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", r, err)
		}
		if r.Resource == "" {
			return
		}
		var back resource.Reason
		if err := json.Unmarshal(again, &back); err != nil || back.Want != r.Want || back.Have != r.Have {
			t.Fatalf("%+v is written %s and read %+v (%v)", r, again, back, err)
		}
	})
}
