package tenancy

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// reads are the methods of the API over gRPC that read.
func reads(yield func(protoreflect.MethodDescriptor) bool) {
	protoregistry.GlobalFiles.RangeFilesByPackage(apiv1.File_muster_api_v1_api_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for k := range methods.Len() {
				m := methods.Get(k)
				for _, verb := range []string{"Get", "List", "Watch", "Explain"} {
					if strings.HasPrefix(string(m.Name()), verb) && !yield(m) {
						return false
					}
				}
			}
		}
		return true
	})
}

// made is a new message of a type.
func made(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	of, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return of.New().Interface()
}

// request is the request of a method, with the fields that it has.
func request(t *testing.T, m protoreflect.MethodDescriptor, values map[string]string) proto.Message {
	t.Helper()
	r := made(t, m.Input())
	for name, value := range values {
		if f := m.Input().Fields().ByName(protoreflect.Name(name)); f != nil && value != "" {
			r.ProtoReflect().Set(f, protoreflect.ValueOfString(value))
		}
	}
	return r
}

// call calls a method and returns the answer as text. Of a watch it reads the objects
// that are there.
func (w *world) call(ctx context.Context, m protoreflect.MethodDescriptor, r proto.Message) (string, error) {
	w.t.Helper()
	name := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	if !m.IsStreamingServer() {
		got := made(w.t, m.Output())
		err := w.conn.Invoke(ctx, name, r, got)
		return protojson.Format(got), err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := w.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
	if err == nil {
		err = stream.SendMsg(r)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for all := ""; ; {
		got := made(w.t, m.Output())
		if err == nil {
			err = stream.RecvMsg(got)
		}
		all += protojson.Format(got)
		if err != nil || strings.Contains(all, "BOOKMARK") {
			return all, err
		}
	}
}

// TestNoAnswerOfGRPCNamesTheWorkOfOthers is as the test of REST, over all methods that
// read.
func TestNoAnswerOfGRPCNamesTheWorkOfOthers(t *testing.T) {
	w := open(t)
	names := map[string]string{
		"Allocations": "waits", "Jobs": "myjob", "Nodes": "n1", "ResourceQuotas": "limit", "QuotaTrees": "company", "QuotaForests": "quota",
		"QuotaBindings": "ml", "Tenants": "ml", "Namespaces": "ml", "Queues": "default", "PriorityClasses": "default",
	}
	namespaced := map[string]bool{"Allocations": true, "Jobs": true, "ResourceQuotas": true, "Events": true}
	read, seen := 0, 0
	for m := range reads {
		of := string(m.Parent().Name())
		values := map[string]string{"name": names[of], "tenant": "ml"}
		if namespaced[of] {
			values["namespace"] = "ml"
		}
		got, err := w.call(w.bearing(w.ml), m, request(t, m, values))
		if words := leaks(got + status.Convert(err).Message()); len(words) > 0 {
			t.Errorf("%s names %q to another tenant: %v %s", m.FullName(), words, err, got)
		}
		if err == nil {
			read++
		}
		if !namespaced[of] || m.Name() != "Get" {
			delete(values, "namespace")
		}
		if all, _ := w.call(w.bearing(adminToken), m, request(t, m, values)); len(leaks(all)) > 0 {
			seen++
		}
	}
	if read < 25 || seen < 12 {
		t.Errorf("the tenant read %d answers, and the administrator found the names in %d: want 25 and 12 or more", read, seen)
	}
}

// TestOverGRPCWhatIsNotYoursIsNotThere: the answer about an object of another tenant has
// the code and the words of an object that does not exist.
func TestOverGRPCWhatIsNotYoursIsNotThere(t *testing.T) {
	w := open(t)
	rows := 0
	for m := range reads {
		there, known := map[string][2]string{
			"Allocations": {"quagga", "okapi"}, "Jobs": {"quagga", "tapir"}, "ResourceQuotas": {"quagga", "zebu"},
			"QuotaBindings": {"", "quagga"}, "Tenants": {"", "quagga"}, "Namespaces": {"", "quagga"}, "Usage": {"", "quagga"},
		}[string(m.Parent().Name())]
		if !known || m.Input().Fields().ByName("name") == nil && m.Input().Fields().ByName("tenant") == nil && there[0] == "" {
			continue
		}
		rows++
		_, foreign := w.call(w.bearing(w.ml), m, request(t, m, map[string]string{"namespace": there[0], "name": there[1], "tenant": there[1]}))
		missing := strings.NewReplacer("quagga", "nobody", "okapi", "nothing", "tapir", "nothing", "zebu", "nothing")
		_, absent := w.call(w.bearing(w.ml), m, request(t, m, map[string]string{"namespace": missing.Replace(there[0]), "name": missing.Replace(there[1]), "tenant": missing.Replace(there[1])}))
		if status.Code(foreign) != codes.NotFound || missing.Replace(status.Convert(foreign).Message()) != status.Convert(absent).Message() || status.Code(absent) != codes.NotFound {
			t.Errorf("%s:\n%v\n%v", m.FullName(), foreign, absent)
		}
	}
	if rows < 15 {
		t.Errorf("%d methods were called, want 15 or more", rows)
	}
}
