package limits

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Refused is called with each message that a server refuses, by the method's full
// name. It may be called by many goroutines and must not block.
type Refused func(ctx context.Context, method string, v *Violation)

// ServerOptions judge every message that a server receives. They come after the
// options that authenticate the caller: interceptors run in the order of the
// options, and the contexts that refused gets have the caller. A refusal is
// InvalidArgument; beyond the size of its message or the elements in all it is
// Internal, as gRPC calls messages that it does not decode.
func ServerOptions(refused ...Refused) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(Codec()),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := admit(request); err != nil {
				tell(ctx, refused, call.FullMethod, err)
				return nil, err
			}
			return next(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, call *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			return next(server, judgedServer{stream, call.FullMethod, refused})
		}),
	}
}

// DialOptions judge every message that a client receives. A refusal is a
// *Violation.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Codec())),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, next grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if err := next(ctx, method, request, answer, conn, options...); err != nil {
				return err
			}
			return admit(answer)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := next(ctx, d, conn, method, options...)
			if err != nil {
				return nil, err
			}
			return judgedClient{stream}, nil
		}),
	}
}

func admit(m any) error {
	if m, ok := m.(proto.Message); ok {
		return Admit(m)
	}
	return nil
}

func tell(ctx context.Context, refused []Refused, method string, err error) {
	var v *Violation
	if errors.As(err, &v) {
		for _, f := range refused {
			f(ctx, method, v)
		}
	}
}

type judgedServer struct {
	grpc.ServerStream
	method  string
	refused []Refused
}

// RecvMsg implements grpc.ServerStream.
func (s judgedServer) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	err := admit(m)
	if err != nil {
		tell(s.Context(), s.refused, s.method, err)
	}
	return err
}

type judgedClient struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (s judgedClient) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return admit(m)
}
