package grpcapi

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// A program that has grpc-go and Google's error details, and nothing of ours but the
// messages, reads each fault of a refused document.
func TestAStockClientReadsAllFaultsOfADocument(t *testing.T) {
	conn := connect(t, door(t, resttest.New(time.Now), nil))
	for name, c := range map[string]struct {
		call   func() error
		fields string
	}{
		"an allocation": {func() error {
			_, err := apiv1.NewAllocationsClient(conn).Create(bearing(t, "admin"), &apiv1.CreateAllocationRequest{
				Namespace: "ml", Allocation: asMessage(`{"metadata":{"name":"A_B"},"spec":{"priority":-1,"resources":{"requests":{"cpu":"many"}}}}`, new(apiv1.Allocation)),
			})
			return err
		}, "metadata.name spec.priority spec.resources.requests.cpu"},
		"a job": {func() error {
			_, err := apiv1.NewJobsClient(conn).Create(bearing(t, "admin"), &apiv1.CreateJobRequest{
				Namespace: "ml", Job: asMessage(`{"metadata":{"name":"A_B"},"spec":{"parallelism":-1,"template":{"spec":{"resources":{"requests":{"cpu":"many"}}}}}}`, new(apiv1.Job)),
			})
			return err
		}, "metadata.name spec.parallelism spec.template.spec.resources.requests.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.Convert(c.call())
			if got.Code() != codes.InvalidArgument {
				t.Fatalf("got %v", got)
			}
			fields := map[string]string{}
			for _, d := range got.Details() {
				if bad, is := d.(*errdetails.BadRequest); is {
					for _, v := range bad.GetFieldViolations() {
						fields[v.GetField()] = v.GetDescription()
					}
				}
			}
			for field := range strings.FieldsSeq(c.fields) {
				if fields[field] == "" {
					t.Errorf("no violation of %s with a description among %q", field, fields)
				}
			}
		})
	}
}
