// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// kindRequest is a request of our own, which has a kind.
type kindRequest struct {
	cluster mcr.ClusterName
	kind    string
}

func (r kindRequest) String() string           { return r.kind }
func (r kindRequest) Cluster() mcr.ClusterName { return r.cluster }
func (r kindRequest) LogValues() []any         { return []any{"kind", r.kind} }
func (r kindRequest) WithCluster(name mcr.ClusterName) kindRequest {
	r.cluster = name
	return r
}

func TestLogConstructor(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "n"}
	req := mcreconcile.Request{ClusterName: "capi/a/b", Request: reconcile.Request{NamespacedName: key}}
	onHub := mcreconcile.Request{Request: reconcile.Request{NamespacedName: key}}
	lifted := mcreconcile.WithCluster[reconcile.Request]{ClusterName: "capi/a/b", Request: reconcile.Request{NamespacedName: key}}

	cases := map[string]struct {
		reason string
		log    func(base logr.Logger) logr.Logger
		want   string
	}{
		"NoRequest": {
			reason: "Outside a reconcile, the controller is all there is to say.",
			log:    func(base logr.Logger) logr.Logger { return LogConstructor[mcreconcile.Request](base, "c")(nil) },
			want:   `"level"=0 "msg"="hello" "controller"="c"`,
		},
		"Request": {
			reason: "The cluster and the object are named.",
			log:    func(base logr.Logger) logr.Logger { return LogConstructor[mcreconcile.Request](base, "c")(&req) },
			want:   `"level"=0 "msg"="hello" "controller"="c" "cluster"="capi/a/b" "namespace"="ns" "name"="n"`,
		},
		"Hub": {
			reason: "The hub has a name in logs.",
			log:    func(base logr.Logger) logr.Logger { return LogConstructor[mcreconcile.Request](base, "c")(&onHub) },
			want:   `"level"=0 "msg"="hello" "controller"="c" "cluster"="hub" "namespace"="ns" "name"="n"`,
		},
		"Lifted": {
			reason: "A request with a cluster around it is as good.",
			log: func(base logr.Logger) logr.Logger {
				return LogConstructor[mcreconcile.WithCluster[reconcile.Request]](base, "c")(&lifted)
			},
			want: `"level"=0 "msg"="hello" "controller"="c" "cluster"="capi/a/b" "namespace"="ns" "name"="n"`,
		},
		"OwnRequest": {
			reason: "A request adds what only it knows.",
			log: func(base logr.Logger) logr.Logger {
				return LogConstructor[kindRequest](base, "c")(&kindRequest{cluster: "capi/a/b", kind: "Thing"})
			},
			want: `"level"=0 "msg"="hello" "controller"="c" "cluster"="capi/a/b" "kind"="Thing"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got string
			base := funcr.New(func(_, args string) { got = args }, funcr.Options{})
			tc.log(base).Info("hello")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nline: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUpstreamLogHasNoCluster(t *testing.T) {
	logged := func(t *testing.T, add func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler)) string {
		t.Helper()
		lines := make(chan string, 10)
		sink := funcr.New(func(_, args string) {
			if strings.Contains(args, `"hello"`) {
				lines <- args
			}
		}, funcr.Options{})
		m := newManager(t, func(o *manager.Options) { o.Logger = sink })
		add(t, m, mcreconcile.Func(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
			logf.FromContext(ctx).Info("hello")
			return reconcile.Result{}, nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := m.Engage(ctx, "x", start(t, newCluster(t, newFakeAPI(t).host))); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		return <-lines
	}
	upstream := logged(t, func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler) {
		t.Helper()
		err := mcbuilder.ControllerManagedBy(m).Named("test").
			For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(false), mcbuilder.WithEngageWithProviderClusters(true)).
			WithOptions(mccontroller.Options{SkipNameValidation: new(true)}).Complete(r)
		if err != nil {
			t.Fatal(err)
		}
	})
	if strings.Contains(upstream, `"x"`) || strings.Contains(upstream, `"name"="a"`) {
		t.Errorf("multicluster-runtime's line names the cluster or the object; is ours needed?\n%s", upstream)
	}
	ours := logged(t, func(t *testing.T, m mcmanager.Manager, r mcreconcile.Reconciler) {
		t.Helper()
		_, err := NewController("test", m, ControllerOptions[mcreconcile.Request]{Reconciler: r, Clusters: watchKinds(configMaps)})
		if err != nil {
			t.Fatal(err)
		}
	})
	if want := `"cluster"="x" "namespace"="d" "name"="a"`; !strings.Contains(ours, want) {
		t.Errorf("want a line with %s, got %s", want, ours)
	}
}
