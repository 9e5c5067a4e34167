package grpcapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
)

// full sets each field of a value, however deep, so that none is left out: texts
// by their path, numbers by their order.
func full(v reflect.Value, path string, n *int) {
	*n++
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"nodes":{"all":{"quota":{"cpu":64,"memory":"32Gi"}}}}`))
		return
	case resource.Reason:
		v.Set(reflect.ValueOf(resource.Reason{Code: path, Resource: "cpu", Want: 2000, Have: 1000, Detail: path}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 8)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem(), path, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			full(v.Index(i), fmt.Sprintf("%s[%d]", path, i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		full(item, path+".value", n)
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString("key of " + path)
		v.SetMapIndex(key, item)
	case reflect.Struct:
		for i := range v.NumField() {
			full(v.Field(i), path+"."+v.Type().Field(i).Name, n)
		}
	default:
		panic(path + ": " + v.Type().String())
	}
}

// survives sends a document through its message and back.
func survives[T any](m proto.Message) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		var want, got T
		n := 0
		full(reflect.ValueOf(&want).Elem(), reflect.TypeFor[T]().Name(), &n)
		if _, err := toMessage(want, m); err != nil {
			t.Fatalf("%v: add the field to its message in proto/muster/api/v1", err)
		}
		document, err := documentOf(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(document, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.Comparer(func(a, b json.RawMessage) bool { return sameJSON(a, b) })); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Each field of each document of the API has a field in its message, and comes
// back as it was.
func TestEveryFieldSurvivesBothWays(t *testing.T) {
	for name, check := range map[string]func(*testing.T){
		"Allocation":              survives[api.Allocation](new(apiv1.Allocation)),
		"AllocationList":          survives[api.AllocationList](new(apiv1.AllocationList)),
		"ApproveOptions":          survives[api.ApproveOptions](new(apiv1.ApproveOptions)),
		"BulkRelease":             survives[api.BulkRelease](new(apiv1.BulkRelease)),
		"BulkReleaseOptions":      survives[api.BulkReleaseOptions](new(apiv1.BulkReleaseOptions)),
		"ClusterUtilization":      survives[api.ClusterUtilization](new(apiv1.ClusterUtilization)),
		"EvictionNoticeList":      survives[api.EvictionNoticeList](new(apiv1.EvictionNoticeList)),
		"NamespaceList":           survives[api.NamespaceList](new(apiv1.NamespaceList)),
		"QueueUsage":              survives[api.QueueUsage](new(apiv1.QueueUsage)),
		"Boost":                   survives[api.Boost](new(apiv1.Boost)),
		"BoostOptions":            survives[api.BoostOptions](new(apiv1.BoostOptions)),
		"QuotaRename":             survives[api.QuotaRename](new(apiv1.QuotaRename)),
		"Resource":                survives[api.Resource](new(apiv1.Resource)),
		"Queue":                   survives[api.Queue](new(apiv1.Queue)),
		"QueueList":               survives[api.QueueList](new(apiv1.QueueList)),
		"PriorityClass":           survives[api.PriorityClass](new(apiv1.PriorityClass)),
		"PriorityClassList":       survives[api.PriorityClassList](new(apiv1.PriorityClassList)),
		"ResourceList":            survives[api.ResourceList](new(apiv1.ResourceList)),
		"TenantList":              survives[api.TenantList](new(apiv1.TenantList)),
		"PastAllocationList":      survives[api.PastAllocationList](new(apiv1.PastAllocationList)),
		"PastPreemptionList":      survives[api.PastPreemptionList](new(apiv1.PastPreemptionList)),
		"PastEventList":           survives[api.PastEventList](new(apiv1.PastEventList)),
		"HistoryStatus":           survives[api.HistoryStatus](new(apiv1.HistoryStatus)),
		"HistoryReport":           survives[api.HistoryReport](new(apiv1.HistoryReport)),
		"HistoryRetention":        survives[api.HistoryRetention](new(apiv1.HistoryRetention)),
		"TenantUsage":             survives[api.TenantUsage](new(apiv1.TenantUsage)),
		"Consumer":                survives[api.Consumer](new(apiv1.Consumer)),
		"CoordinatorList":         survives[api.CoordinatorList](new(apiv1.CoordinatorList)),
		"DeleteOptions":           survives[api.DeleteOptions](new(apiv1.DeleteOptions)),
		"Drain":                   survives[api.Drain](new(apiv1.Drain)),
		"DrainOptions":            survives[api.DrainOptions](new(apiv1.DrainOptions)),
		"Explanation":             survives[api.Explanation](new(apiv1.Explanation)),
		"FenceOptions":            survives[api.FenceOptions](new(apiv1.FenceOptions)),
		"Job":                     survives[api.Job](new(apiv1.Job)),
		"JobList":                 survives[api.JobList](new(apiv1.JobList)),
		"Node":                    survives[api.Node](new(apiv1.Node)),
		"NodeList":                survives[api.NodeList](new(apiv1.NodeList)),
		"Preemption":              survives[api.Preemption](new(apiv1.Preemption)),
		"PreemptionRequest":       survives[api.PreemptionRequest](new(apiv1.PreemptionRequest)),
		"QuotaBindingList":        survives[api.QuotaBindingList](new(apiv1.QuotaBindingList)),
		"QuotaDryRun":             survives[api.QuotaDryRun](new(apiv1.QuotaDryRun)),
		"QuotaExplanation":        survives[api.QuotaExplanation](new(apiv1.QuotaExplanation)),
		"QuotaForestList":         survives[api.QuotaForestList](new(apiv1.QuotaForestList)),
		"FeatureLevel":            survives[api.FeatureLevel](new(apiv1.FeatureLevel)),
		"FeatureLevelPatch":       survives[api.FeatureLevelPatch](new(apiv1.FeatureLevelPatch)),
		"QuotaMode":               survives[api.QuotaMode](new(apiv1.QuotaMode)),
		"QuotaModePatch":          survives[api.QuotaModePatch](new(apiv1.QuotaModePatch)),
		"QuotaReclaim":            survives[api.QuotaReclaim](new(apiv1.QuotaReclaim)),
		"QuotaTreeList":           survives[api.QuotaTreeList](new(apiv1.QuotaTreeList)),
		"ReclaimOptions":          survives[api.ReclaimOptions](new(apiv1.ReclaimOptions)),
		"ReconcileOptions":        survives[api.ReconcileOptions](new(apiv1.ReconcileOptions)),
		"Reconciliation":          survives[api.Reconciliation](new(apiv1.Reconciliation)),
		"ResourceQuotaList":       survives[api.ResourceQuotaList](new(apiv1.ResourceQuotaList)),
		"EventList":               survives[api.EventList](new(apiv1.EventList)),
		"AccessTokenList":         survives[api.AccessTokenList](new(apiv1.AccessTokenList)),
		"AuthorityList":           survives[api.AuthorityList](new(apiv1.AuthorityList)),
		"BootstrapTokenList":      survives[api.BootstrapTokenList](new(apiv1.BootstrapTokenList)),
		"NodeBanList":             survives[api.NodeBanList](new(apiv1.NodeBanList)),
		"OperatorCertificateList": survives[api.OperatorCertificateList](new(apiv1.OperatorCertificateList)),
		"RoleBindingList":         survives[api.RoleBindingList](new(apiv1.RoleBindingList)),
		"RotateOptions":           survives[api.RotateOptions](new(apiv1.RotateOptions)),
		"WhoAmI":                  survives[api.WhoAmI](new(apiv1.WhoAmI)),
	} {
		t.Run(name, check)
	}
}

func TestAFieldWithoutAPlaceIsNamed(t *testing.T) {
	for document, want := range map[string]string{
		`{"spec":{"new":1}}`:                      `muster.api.v1.AllocationSpec has no field "new"`,
		`{"metadata":[]}`:                         "muster.api.v1.Allocation.metadata: a list",
		`{"status":{"member":"one"}}`:             "muster.api.v1.AllocationStatus.member: string does not suit",
		`{"status":{"member":1.5}}`:               "member",
		`{"metadata":{"labels":{"a":{"b":"c"}}}}`: "labels",
	} {
		if _, err := toMessage(json.RawMessage(document), new(apiv1.Allocation)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", document, err, want)
		}
	}
}

// FuzzDocumentOf: no bytes of a client break the way to a document.
func FuzzDocumentOf(f *testing.F) {
	some, err := proto.Marshal(&apiv1.Allocation{Metadata: &apiv1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(some)
	f.Fuzz(func(t *testing.T, given []byte) {
		m := new(apiv1.Allocation)
		if proto.Unmarshal(given, m) != nil {
			return
		}
		document, err := documentOf(m)
		if err != nil {
			t.Fatal(err)
		}
		if a, status := api.DecodeAllocation(document); status == nil {
			if _, err := toMessage(a, new(apiv1.Allocation)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
