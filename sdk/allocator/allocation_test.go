package allocator

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

// fill sets every field below v to a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text" + strings.Repeat("x", *n%7) + string(rune('a'+*n%26)))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n%100 + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n%100 + 1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) / 4)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Type().String() + " has no value yet: add its kind")
	}
}

// TestNoFieldIsLost: an allocation with every field set is the same after the way
// to package api and back, and the other way round. A field that package api gets
// makes the second part fail until it is here too.
func TestNoFieldIsLost(t *testing.T) {
	n := 0
	t.Run("there and back", func(t *testing.T) {
		var a Allocation
		fill(reflect.ValueOf(&a).Elem(), &n)
		doc, err := documentOf(&a)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&a, allocationOf(doc)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("back and there", func(t *testing.T) {
		var doc api.Allocation
		fill(reflect.ValueOf(&doc).Elem(), &n)
		doc.APIVersion, doc.Kind = "", "" // the path of a request says both
		doc.Spec.GangScheduling = nil     // the same as the one in scheduling
		again, err := documentOf(allocationOf(&doc))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&doc, again); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("how an allocation ends", func(t *testing.T) {
		var doc api.DeleteOptions
		fill(reflect.ValueOf(&doc).Elem(), &n)
		o := DeleteOptions{GracePeriodSeconds: *doc.GracePeriodSeconds, PropagationPolicy: doc.PropagationPolicy, Preconditions: doc.Preconditions, Reason: doc.Reason}
		if diff := cmp.Diff(doc, o.documentOf()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDocumentsThatAreSent(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		given Allocation
		want  api.AllocationSpec
		err   string
	}{
		"no priority leaves the number to the class": {
			given: Allocation{Spec: AllocationSpec{PriorityClass: "high-priority"}}, want: api.AllocationSpec{PriorityClass: "high-priority"},
		},
		"a priority replaces the number of the class": {
			given: Allocation{Spec: AllocationSpec{Priority: 100, PriorityClass: "high-priority"}},
			want:  api.AllocationSpec{Priority: number(100), PriorityClass: "high-priority"},
		},
		"a priority that no document can have": {
			given: Allocation{Name: "a", Spec: AllocationSpec{Priority: 1 << 40}}, err: "allocation a: Spec.Priority: 1099511627776 is outside 0..1000000000",
		},
		"a priority below 0": {
			given: Allocation{Name: "a", Spec: AllocationSpec{Priority: -1}}, err: "allocation a: Spec.Priority: -1 is outside 0..1000000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := documentOf(&c.given)
			if c.err != "" || err != nil {
				if err == nil || err.Error() != c.err {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, doc.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGraceOfADeletion(t *testing.T) {
	for name, c := range map[string]struct {
		given DeleteOptions
		want  string
	}{
		"the server's default": {DeleteOptions{}, `{}`},
		"a number":             {DeleteOptions{GracePeriodSeconds: 30}, `{"gracePeriodSeconds":30}`},
		"none":                 {DeleteOptions{Immediate: true, GracePeriodSeconds: 30, Reason: "wrong data"}, `{"gracePeriodSeconds":0,"reason":"wrong data"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(c.given.documentOf())
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}
