package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// dial makes the client: for its connections, users' tokens and balancing. The
// calls over it are this package's own. It calls unreachable for a member that
// could not be connected to.
func dial(c Config, h *history, unreachable func()) (*clientv3.Client, error) {
	transport := grpc.WithTransportCredentials(insecure.NewCredentials())
	if strings.HasPrefix(c.Endpoints[0], "https://") {
		transport = grpc.WithTransportCredentials(newFileCredentials(c.TLS, c.Logger))
	}
	params := reconnect
	params.MinConnectTimeout = c.DialTimeout
	var dialer net.Dialer
	bare := clientv3.Config{
		Endpoints: urls(c.Endpoints), DialTimeout: c.DialTimeout, Logger: zapTo(c.Logger),
		DialOptions: []grpc.DialOption{grpc.WithUserAgent("muster"), transport, grpc.WithConnectParams(params)},
	}
	var client *clientv3.Client // nil until the first token is there
	login := func() (*clientv3.Client, error) {
		there := bare
		if client != nil {
			there.Endpoints = client.Endpoints()
		}
		return clientv3.New(there)
	}
	full := bare
	full.Username, full.Password = c.Username, c.Password
	full.DialKeepAliveTime, full.DialKeepAliveTimeout = keepAliveTime, keepAliveTimeout
	full.DialOptions = append(slices.Clone(bare.DialOptions),
		grpc.WithChainUnaryInterceptor(sendTxnOnce, askForTokenWithoutOne(login)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err == nil {
				h.connections.Add(1) // before anything can be asked over it
			} else {
				unreachable()
			}
			return conn, err
		}))
	var err error
	client, err = clientv3.New(full)
	return client, err
}

// askForTokenWithoutOne has a user log in over a client without a token, where
// a server refuses the login for the token that is sent along. etcd before 3.5
// does so once a token has expired, or its member was restarted; clientv3 would
// log in again and again for ever.
func askForTokenWithoutOne(bare func() (*clientv3.Client, error)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if method != pb.Auth_Authenticate_FullMethodName || !errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
			return err
		}
		client, err := bare()
		if err != nil {
			return err
		}
		defer func() { _ = closeClient(client) }()
		return client.ActiveConnection().Invoke(ctx, method, req, reply)
	}
}

// sendTxnOnce keeps clientv3 from sending a transaction again that a server
// gave up, which it takes for a call that its caller gave up.
func sendTxnOnce(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if method != pb.KV_Txn_FullMethodName || ctx.Err() != nil {
		return err
	}
	if c := status.Code(err); c == codes.Canceled || c == codes.DeadlineExceeded {
		return status.Errorf(codes.Unavailable, "given up by the server: %v", err)
	}
	return err
}
