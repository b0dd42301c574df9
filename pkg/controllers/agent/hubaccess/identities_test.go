// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// reasonOf is the reason of what is reported to users; empty for any other error.
func reasonOf(err error) string {
	if p, ok := errors.AsType[*condition.Error](err); ok {
		return p.Reason
	}
	return ""
}

func TestClassIdentity(t *testing.T) {
	sa := &fleetv1alpha1.ServiceAccountReference{Namespace: "bar", Name: "agent1"}
	for name, tc := range map[string]struct {
		reason     string
		id         *fleetv1alpha1.HubIdentity
		want       Key
		wantReason string
	}{
		"None":           {reason: "Without one it is the manager's own."},
		"ServiceAccount": {"It is impersonated.", &fleetv1alpha1.HubIdentity{ServiceAccountRef: sa}, Key{ServiceAccount: types.NamespacedName{Namespace: "bar", Name: "agent1"}}, ""},
		"Secret": {
			"It is in the agent's namespace of the cluster.", &fleetv1alpha1.HubIdentity{CredentialsSecretName: "agent1-creds"},
			Key{Cluster: "w1", Secret: types.NamespacedName{Namespace: "masthead-system", Name: "agent1-creds"}}, "",
		},
		"Both":    {"It is not clear who is meant.", &fleetv1alpha1.HubIdentity{ServiceAccountRef: sa, CredentialsSecretName: "x"}, Key{}, fleetv1alpha1.ReasonInvalidClass},
		"Neither": {"A missing identity does not mean the manager's.", &fleetv1alpha1.HubIdentity{}, Key{}, fleetv1alpha1.ReasonInvalidClass},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ClassIdentity(fleetv1alpha1.AgentSpec{Identity: tc.id}, "w1")
			reason := reasonOf(err)
			if got != tc.want || reason != tc.wantReason {
				t.Errorf("%s want %v %q, got %v %q", tc.reason, tc.want, tc.wantReason, got, reason)
			}
		})
	}
}

func TestNamespaceIdentity(t *testing.T) {
	annotated := func(v string) map[string]string {
		return map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: v}
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		want        Key
		given       bool
		wantReason  string
	}{
		"None":  {reason: "The class decides."},
		"Named": {"The Secret is in the namespace itself, and in no other.", annotated("creds"), Key{Cluster: "w1", Secret: types.NamespacedName{Namespace: "foo", Name: "creds"}}, true, ""},
		"Empty": {"A mistake must not lead to the rights of another user.", annotated(""), Key{}, true, fleetv1alpha1.ReasonCredentialsInvalid},
		"Path":  {"A name does not lead to another namespace.", annotated("../bar/creds"), Key{}, true, fleetv1alpha1.ReasonCredentialsInvalid},
		"Slash": {"Nor does this.", annotated("bar/creds"), Key{}, true, fleetv1alpha1.ReasonCredentialsInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, given, err := NamespaceIdentity(tc.annotations, "w1", "foo")
			reason := reasonOf(err)
			if got != tc.want || given != tc.given || reason != tc.wantReason {
				t.Errorf("%s want %v %v %q, got %v %v %q", tc.reason, tc.want, tc.given, tc.wantReason, got, given, reason)
			}
		})
	}
}

// secrets is a workload cluster with Secrets.
type secrets struct {
	client.Reader
	data map[types.NamespacedName][]byte
	err  error
	read int
}

func (s *secrets) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.read++
	if s.err != nil {
		return s.err
	}
	data, ok := s.data[key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	into.(*corev1.Secret).Data = map[string][]byte{fleetv1alpha1.CredentialsSecretKey: data}
	return nil
}

// identitiesFixture holds identities with a clock that the test advances.
func identitiesFixture(t *testing.T) (*Clients, *testclock.FakePassiveClock) {
	t.Helper()
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	return &Clients{
		Manager: &Access{}, config: &rest.Config{Host: "https://127.0.0.1:1"},
		scheme: controllertest.Scheme(), mapper: meta.NewDefaultRESTMapper(nil),
		clock: clock, poll: time.Minute, retry: 10 * time.Second, entries: map[mcr.ClusterName]map[Key]*identityEntry{},
	}, clock
}

func TestCredentialsAreReadWhenTheyAreUsedAndNotAllTheTime(t *testing.T) {
	i, clock := identitiesFixture(t)
	name := types.NamespacedName{Namespace: "foo", Name: "creds"}
	from := &secrets{data: map[types.NamespacedName][]byte{name: agenttest.AsToken("one")}}
	key := Key{Cluster: "w1", Secret: name}
	use := func(wantReason string, wantRead int, why string) *Access {
		t.Helper()
		access, err := i.Use(t.Context(), from, key)
		got := reasonOf(err)
		if err != nil && got == "" {
			t.Fatal(err)
		}
		if got != wantReason || (access == nil) != (wantReason != "") || from.read != wantRead {
			t.Fatalf("%s: want reason %q and %d reads, got %q and %d (access %v)", why, wantReason, wantRead, got, from.read, access != nil)
		}
		return access
	}
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }

	one := use("", 1, "it is read at first")
	if use("", 1, "and kept") != one {
		t.Error("want one client")
	}
	pass(time.Minute)
	if use("", 2, "it is read again after a while") != one {
		t.Error("want the client to be kept if nothing has changed")
	}
	from.data[name] = agenttest.AsToken("two")
	i.Reject(one.In(t.Context()))
	two := use("", 3, "it is read at once when the hub has refused it")
	if two == one {
		t.Error("want a new client for new credentials")
	}
	i.Reject(one.In(t.Context()))
	use("", 3, "that the hub refused what is not used any more means nothing")
	i.Reject(two.In(t.Context()))
	use(fleetv1alpha1.ReasonCredentialsRejected, 4, "what the hub has refused and has not changed")
	use(fleetv1alpha1.ReasonCredentialsRejected, 4, "is left alone")
	pass(10 * time.Second)
	if use("", 5, "and tried again after a while") != two {
		t.Error("want the same client for the same credentials")
	}
	delete(from.data, name)
	pass(time.Minute)
	use(fleetv1alpha1.ReasonCredentialsMissing, 6, "credentials that are gone are not used any more")
	if i.Last(key) != two {
		t.Error("want them known for letting claims go")
	}
	from.data[name] = agenttest.AsUser(map[string]any{"tokenFile": "/etc/shadow"}, nil)
	pass(10 * time.Second)
	use(fleetv1alpha1.ReasonCredentialsInvalid, 7, "what is more than credentials is refused")
	if i.Last(key) != two {
		t.Error("want the last ones that could be used")
	}
	i.Reject(two.In(t.Context()))
	if i.Last(key) != nil {
		t.Error("want what the hub has refused not to be used for anything")
	}
	from.err = errors.New("the connection broke")
	pass(10 * time.Second)
	if _, err := i.Use(t.Context(), from, key); err == nil || reasonOf(err) != "" {
		t.Error("want an error that is retried when the cluster could not be queried")
	}
}

func TestIdentitiesAreBoundedAndDropped(t *testing.T) {
	i, clock := identitiesFixture(t)
	from := &secrets{data: map[types.NamespacedName][]byte{}}
	use := func(cluster mcr.ClusterName, n int) {
		t.Helper()
		name := types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", n), Name: "creds"}
		from.data[name] = agenttest.AsToken("x")
		if _, err := i.Use(t.Context(), from, Key{Cluster: cluster, Secret: name}); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(clock.Now().Add(time.Millisecond))
	}
	use("w2", 0)
	for n := range 3 * maxIdentities {
		use("w1", n)
	}
	if got := len(i.entries["w1"]); got != maxIdentities {
		t.Errorf("want %d identities of a cluster, got %d", maxIdentities, got)
	}
	if len(i.entries["w2"]) != 1 {
		t.Error("want the identity of another cluster to stay")
	}
	closed := 0
	for _, e := range i.entries["w1"] {
		e.close = func() { closed++ }
	}
	i.Forget("w1")
	if closed != maxIdentities || len(i.entries["w1"]) != 0 {
		t.Errorf("want the connections of a cluster that is gone closed, got %d", closed)
	}
	clock.SetTime(clock.Now().Add(identityIdle + time.Second))
	use("w3", 0)
	if len(i.entries["w2"]) != 0 {
		t.Error("want unused entries to be dropped")
	}
}

func TestEveryIdentityIsHeldByWhatHoldsTheManager(t *testing.T) {
	i, _ := identitiesFixture(t)
	errHeld := errors.New("no lease")
	i.config.WrapTransport = func(http.RoundTripper) http.RoundTripper {
		return controllertest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, errHeld })
	}
	name := types.NamespacedName{Namespace: "foo", Name: "creds"}
	from := &secrets{data: map[types.NamespacedName][]byte{name: agenttest.AsToken("x")}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	i.mapper = mapper
	for _, key := range []Key{{Cluster: "w1", Secret: name}, {ServiceAccount: types.NamespacedName{Namespace: "bar", Name: "agent1"}}} {
		access, err := i.Use(t.Context(), from, key)
		if err != nil {
			t.Fatal(err)
		}
		err = API{}.Delete(access.In(t.Context()), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "bar", Name: "x"}})
		if !errors.Is(err, errHeld) {
			t.Errorf("%s: want the request to be held, got %v", key, err)
		}
	}
}

func FuzzCredentialsSecret(f *testing.F) {
	for _, seed := range [][]byte{
		nil, agenttest.AsToken("s3cr3t-s3cr3t"), agenttest.AsUser(map[string]any{"exec": map[string]any{"command": "s3cr3t-s3cr3t"}}, nil),
		agenttest.AsUser(map[string]any{"token": "s3cr3t-s3cr3t", "username": "x"}, map[string]any{"proxy-url": "http://s3cr3t-s3cr3t@x"}),
		[]byte("users: [{user: {token: [s3cr3t-s3cr3t]}}]"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{fleetv1alpha1.CredentialsSecretKey: kubeconfig}}
		user, err := parseUser(secret, types.NamespacedName{Namespace: "foo", Name: "creds"})
		if (user == nil) == (err == nil) {
			t.Fatalf("want either a user or a problem, got %v and %v", user, err)
		}
		if err != nil && (reasonOf(err) != fleetv1alpha1.ReasonCredentialsInvalid || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("want a reason, and nothing secret in the message: %v", err)
		}
	})
}
