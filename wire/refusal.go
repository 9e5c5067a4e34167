package wire

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/musterd/muster/api"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/wire/limits"
)

// refusalDomain is the domain of our ErrorInfo.
const refusalDomain = "muster"

// maxCauses bounds the field violations of one refusal: the whole of it travels
// in the trailers of a call.
const maxCauses = 32

// ToRefusal is a Status as a gRPC error. Its code is that of api's table; its
// details are the Status itself (muster.v1.Refusal) and, for clients that know
// Google's, an ErrorInfo with the reason, a BadRequest with the field of each
// cause, a RetryInfo and a RequestInfo.
func ToRefusal(s *api.Status) error {
	row := api.OutcomeOf(s)
	plain := status.New(codeNamed(row.GRPC), limits.Plain(s.Message, limits.MaxDetail))
	details := []protoadapt.MessageV1{
		protoadapt.MessageV1Of(&musterv1.Refusal{Code: int32(s.Code), Reason: s.Reason, Details: ToReasons(s.Details)}),
		protoadapt.MessageV1Of(&errdetails.ErrorInfo{Reason: s.Reason, Domain: refusalDomain, Metadata: map[string]string{"httpCode": strconv.Itoa(s.Code)}}),
	}
	if len(s.Causes) > 0 {
		details = append(details, protoadapt.MessageV1Of(toViolations(s.Causes)))
	}
	if s.RetryAfterSeconds > 0 {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(s.RetryAfterSeconds) * time.Second)}))
	}
	if s.RequestID != "" {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RequestInfo{RequestId: s.RequestID}))
	}
	detailed, err := plain.WithDetails(details...)
	if err != nil {
		return plain.Err() // the details cannot be encoded: text that is not UTF-8
	}
	return detailed.Err()
}

func toViolations(causes []api.Cause) *errdetails.BadRequest {
	m := new(errdetails.BadRequest)
	for _, c := range causes[:min(len(causes), maxCauses)] {
		m.FieldViolations = append(m.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: limits.Plain(c.Field, limits.MaxDetail), Description: limits.Plain(c.Message, limits.MaxDetail),
		})
	}
	return m
}

// FromRefusal is the Status that a gRPC error was made from. Of an error without
// our details it is the Status that the code means; nil for no error.
func FromRefusal(err error) *api.Status {
	if err == nil {
		return nil
	}
	given := status.Convert(err)
	row := api.OutcomeOfGRPC(nameOf(given.Code()))
	s := api.Errorf(row.HTTP, "%s", given.Message()).Because(row.Reason)
	for _, d := range given.Details() {
		switch m := d.(type) {
		case *musterv1.Refusal:
			s.Code, s.Reason = int(m.GetCode()), m.GetReason()
			if reasons, err := FromReasons(m.GetDetails()); err == nil {
				s.Details = reasons
			}
		case *errdetails.BadRequest:
			for _, v := range m.GetFieldViolations() {
				s.Causes = append(s.Causes, api.Cause{Field: v.GetField(), Message: v.GetDescription()})
			}
		case *errdetails.RetryInfo:
			s.RetryAfterSeconds = int(m.GetRetryDelay().AsDuration() / time.Second)
		case *errdetails.RequestInfo:
			s.RequestID = m.GetRequestId()
		}
	}
	return s
}

// IsRefusal reports whether a gRPC error was made from a Status, and not by gRPC
// itself.
func IsRefusal(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if _, is := d.(*musterv1.Refusal); is {
			return true
		}
	}
	return false
}

// codeNamed is a code by its canonical name; the names are api's table's.
func codeNamed(name string) codes.Code {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil {
		return codes.Internal
	}
	return c
}

// nameOf is the canonical name of a code: gRPC's own String writes DeadlineExceeded.
func nameOf(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	var b strings.Builder
	for i, r := range c.String() {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
