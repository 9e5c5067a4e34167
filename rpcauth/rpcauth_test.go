package rpcauth_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/rpcauth"
)

const secret = "0123456789abcdef0123456789abcdef"

type health struct {
	healthv1.UnimplementedHealthServer
}

func (health) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}

func (health) Watch(_ *healthv1.HealthCheckRequest, s healthv1.Health_WatchServer) error {
	return s.Send(&healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING})
}

func TestEveryCallNeedsTheToken(t *testing.T) {
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(rpcauth.ServerOptions(token)...)
	healthv1.RegisterHealthServer(server, health{})
	go server.Serve(listener)
	defer server.Stop()

	other, _ := rpcauth.NewToken(strings.Repeat("x", 32))
	for name, c := range map[string]struct {
		credentials *rpcauth.Token
		header      string
		wantCode    codes.Code
		wantText    string
	}{
		"the cluster's token is let in":       {credentials: &token, wantCode: codes.OK},
		"no token is refused":                 {wantCode: codes.Unauthenticated, wantText: "0 authorization headers"},
		"another cluster's token is refused":  {credentials: &other, wantCode: codes.Unauthenticated, wantText: "not this cluster's"},
		"a bare secret is refused":            {header: secret, wantCode: codes.Unauthenticated, wantText: `does not start with "Bearer "`},
		"a prefix of the secret is refused":   {header: "Bearer " + secret[:31], wantCode: codes.Unauthenticated, wantText: "not this cluster's"},
		"an empty bearer is refused":          {header: "Bearer ", wantCode: codes.Unauthenticated, wantText: "not this cluster's"},
		"two tokens in one header is refused": {header: "Bearer " + secret + "," + secret, wantCode: codes.Unauthenticated, wantText: "not this cluster's"},
	} {
		t.Run(name, func(t *testing.T) {
			options := []grpc.DialOption{
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			}
			if c.credentials != nil {
				options = append(options, grpc.WithPerRPCCredentials(rpcauth.Credentials(*c.credentials)))
			}
			conn, err := grpc.NewClient("passthrough:///test", options...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx := t.Context()
			if c.header != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", c.header)
			}
			client := healthv1.NewHealthClient(conn)
			_, unary := client.Check(ctx, &healthv1.HealthCheckRequest{})
			stream, err := client.Watch(ctx, &healthv1.HealthCheckRequest{})
			if err != nil {
				t.Fatal(err)
			}
			_, streaming := stream.Recv()
			for kind, err := range map[string]error{"unary": unary, "streaming": streaming} {
				if got := status.Code(err); got != c.wantCode || (err != nil && !strings.Contains(err.Error(), c.wantText)) {
					t.Errorf("%s call: %v, want %s with %q", kind, err, c.wantCode, c.wantText)
				}
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s call shows the secret: %v", kind, err)
				}
			}
		})
	}
}

func TestTheZeroTokenLetsNobodyIn(t *testing.T) {
	if (rpcauth.Token{}).Equal(rpcauth.Token{}) {
		t.Error("zero token equals itself")
	}
}

func TestATokenNeverPrintsItsSecret(t *testing.T) {
	token, _ := rpcauth.NewToken(secret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, token); strings.Contains(text, secret) {
			t.Errorf("%s prints %q", verb, text)
		}
	}
}

func TestTokenFiles(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string
	}{
		"owner only":                 {content: secret + "\n", mode: 0o600},
		"read only":                  {content: secret, mode: 0o400},
		"group may read":             {content: secret, mode: 0o640, want: "chmod 0600"},
		"the world may read":         {content: secret, mode: 0o604, want: "chmod 0600"},
		"too short":                  {content: "abc", mode: 0o600, want: "3 characters, want at least 16"},
		"a space inside":             {content: "0123456789 abcdef", mode: 0o600, want: "character 11"},
		"too long a file":            {content: strings.Repeat("x", 5000), mode: 0o600, want: "5000 bytes, more than 4096"},
		"empty":                      {mode: 0o600, want: "0 characters"},
		"several lines are no token": {content: secret + "\n" + secret, mode: 0o600, want: "character 33"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			token, err := rpcauth.ReadFile(path)
			if c.want == "" {
				if err != nil || token.Secret() != secret {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want the path and %q", err, c.want)
			}
		})
	}
}

func TestAWrittenTokenReadsBackAndIsNotOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	token := rpcauth.Generate()
	if err := rpcauth.WriteFile(path, token); err != nil {
		t.Fatal(err)
	}
	got, err := rpcauth.ReadFile(path)
	if err != nil || !got.Equal(token) {
		t.Fatalf("read back: %v", err)
	}
	if err := rpcauth.WriteFile(path, rpcauth.Generate()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second write: %v, want ErrExist", err)
	}
}

func TestOnlyLoopbackAddressesAreServed(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8472":   "",
		"127.8.8.8:1":      "",
		"[::1]:0":          "",
		"localhost:80":     "",
		"0.0.0.0:8472":     "not on the loopback interface",
		":8472":            "not on the loopback interface",
		"192.0.2.1:8472":   "not on the loopback interface",
		"example.org:8472": "not on the loopback interface",
		"127.0.0.1":        "want HOST:PORT",
	} {
		err := rpcauth.CheckLoopback("listen", address)
		if (err == nil) != (want == "") || (err != nil && (!strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "listen: "))) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
