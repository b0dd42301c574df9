// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token/tokentest"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// importWithIdentity is an import with the identity of a ServiceAccount of the hub, whose endpoint gives tokens.
func importWithIdentity(t *testing.T) (*hubOfOneImport, *tokentest.Cloud) {
	t.Helper()
	cloud := &tokentest.Cloud{STS: tokentest.Answering(http.StatusOK, tokentest.Exchanged)}
	server, ca := tokentest.Server(t, cloud.ServeHTTP)
	imp := anImport()
	imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
		Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
		Google: &fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: tokentest.Identity(server, "")},
	}
	h := newHub(t, imp, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: imp.Namespace, Name: "shop-importer", Labels: map[string]string{fleetv1alpha1.ImportCredentialsLabel: string(imp.UID)},
	}})
	minted, err := token.New([]string{server.URL + "/"}, ca, h.r.clock)
	if err != nil {
		t.Fatal(err)
	}
	h.r.kubeconfigs.tokens = minted
	return h, cloud
}

// TestHubGivesATokenForOneAudience: the request is for the namespace of the import, for one audience and ten minutes;
// if the hub answers with anything but such a token, nothing is sent to anyone.
func TestHubGivesATokenForOneAudience(t *testing.T) {
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	for name, tc := range map[string]struct {
		reason string
		answer func(*authenticationv1.TokenRequest) error
		want   string
		asks   int64
	}{
		"Given": {reason: "It is shown once.", answer: func(*authenticationv1.TokenRequest) error { return nil }, want: fleetv1alpha1.ReasonKubeconfigWritten, asks: 1},
		"Forbidden": {
			reason: "The right was taken away just now.", want: fleetv1alpha1.ReasonHubServiceAccountNotAllowed,
			answer: func(*authenticationv1.TokenRequest) error {
				return apierrors.NewForbidden(accounts, "shop-importer", errors.New("no such right"))
			},
		},
		"NotFound": {
			reason: "There is none of the name.", want: fleetv1alpha1.ReasonHubServiceAccountNotFound,
			answer: func(*authenticationv1.TokenRequest) error { return apierrors.NewNotFound(accounts, "shop-importer") },
		},
		"Invalid": {
			reason: "The hub gives no token for ten minutes.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(*authenticationv1.TokenRequest) error { return apierrors.NewBadRequest("expirationSeconds") },
		},
		"Empty": {
			reason: "There is nothing to show.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error { r.Status.Token = ""; return nil },
		},
		"OtherAudience": {
			reason: "A webhook made it one for the hub.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error {
				r.Spec.Audiences = append(r.Spec.Audiences, "https://kubernetes.default.svc")
				return nil
			},
		},
		"Huge": {
			reason: "It is no token of Kubernetes's.", want: fleetv1alpha1.ReasonTokenRefused,
			answer: func(r *authenticationv1.TokenRequest) error {
				r.Status.Token = strings.Repeat("a", maxHubToken+1)
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, cloud := importWithIdentity(t)
			funcs := h.funcs()
			funcs.SubResourceCreate = func(_ context.Context, _ client.Client, sub string, of, requested client.Object, _ ...client.SubResourceCreateOption) error {
				request, ok := requested.(*authenticationv1.TokenRequest)
				if !ok || sub != "token" || of.GetNamespace() != h.key.Namespace || of.GetName() != "shop-importer" ||
					len(request.Spec.Audiences) != 1 || request.Spec.Audiences[0] != tokentest.PoolProvider || *request.Spec.ExpirationSeconds != 600 {
					t.Errorf("%s\nthe request is another one: %s of %v: %v", tc.reason, sub, of, requested)
				}
				request.Status.Token = tokentest.HubSecret
				return tc.answer(request)
			}
			h.r.hub = interceptor.NewClient(h.c, funcs)
			h.settle()
			h.want(fleetv1alpha1.ConditionKubeconfigReady, tc.want)
			if n := cloud.Requests.Load(); n != tc.asks {
				t.Errorf("%s\nwant %d requests to the endpoint, got %d", tc.reason, tc.asks, n)
			}
			for _, c := range h.get().Status.Conditions {
				if strings.Contains(c.Message, tokentest.HubSecret) {
					t.Errorf("%s\nthe token is revealed: %s", tc.reason, c.Message)
				}
			}
		})
	}
}

// TestIdentityIsWithdrawnWithTheGrant: the token that was issued would work for an hour; its Secret is deleted in the
// next pass, also while something else stops the import.
func TestIdentityIsWithdrawnWithTheGrant(t *testing.T) {
	for name, stops := range map[string]bool{"AtTheNextLook": false, "WhileTheImportIsStopped": true} {
		t.Run(name, func(t *testing.T) {
			h, _ := importWithIdentity(t)
			h.connected()
			if stops {
				config := h.object(config("ProviderConfig", "", "").GetObjectKind().GroupVersionKind(), h.key.Namespace, "customer")
				if err := h.c.Delete(t.Context(), config); err != nil {
					t.Fatal(err)
				}
			}
			h.hub.denied = "create serviceaccounts/token."
			h.isWithdrawn(fleetv1alpha1.ReasonHubServiceAccountNotAllowed)
			imp := h.get()
			for _, c := range imp.Status.Conditions {
				if c.Type == fleetv1alpha1.ConditionKubeconfigReady && !strings.Contains(c.Message, `get the ServiceAccount "shop-importer" and create serviceaccounts/token`) {
					t.Errorf("the message does not say what is missing: %s", c.Message)
				}
			}
		})
	}
}

// TestServiceAccountOfTheHubIsOfOneImport: the attacker may write ClusterImports in the namespace, and names a
// ServiceAccount that Masthead may use, for a cluster of theirs. A token of it is requested only for an import to which
// a user who may write the ServiceAccount has given it; taking it back withdraws what was created with it.
func TestServiceAccountOfTheHubIsOfOneImport(t *testing.T) {
	const notAllowed = fleetv1alpha1.ReasonCredentialsNotAllowed
	account := func(labels ...string) []client.Object {
		meta := metav1.ObjectMeta{Namespace: "customers", Name: "shop-importer", Labels: map[string]string{}}
		for _, value := range labels {
			meta.Labels[fleetv1alpha1.ImportCredentialsLabel] = value
		}
		return []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}}
	}
	for name, tc := range map[string]struct {
		reason string
		hub    []client.Object
		// fails is the hub's answer to requests for the ServiceAccount.
		fails error
		// want is why there is no token; "" for a token.
		want string
	}{
		"This":    {reason: "It is for this import.", hub: account("import-uid")},
		"All":     {reason: "It is for every import of the namespace.", hub: account("true")},
		"None":    {reason: "The grant alone says nothing of who may have the identity.", hub: account(), want: notAllowed},
		"Another": {reason: "It is for another import.", hub: account("another-uid"), want: notAllowed},
		"Name":    {reason: "Another user could create an import with that name.", hub: account("shop"), want: notAllowed},
		"Empty":   {reason: "It says nothing.", hub: account(""), want: notAllowed},
		"Deleted": {reason: "It was deleted.", want: fleetv1alpha1.ReasonHubServiceAccountNotFound},
		"Forbidden": {
			reason: "Masthead may not see for whom it is.", hub: account("true"), want: fleetv1alpha1.ReasonHubServiceAccountNotAllowed,
			fails: apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "shop-importer", errors.New("no such right")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &tokentest.Cloud{STS: tokentest.Answering(http.StatusOK, tokentest.Exchanged)}
			server, ca := tokentest.Server(t, cloud.ServeHTTP)
			clock := clocktesting.NewFakeClock(time.Now())
			minted, err := token.New([]string{server.URL + "/"}, ca, clock)
			if err != nil {
				t.Fatal(err)
			}
			issued := 0
			hub := interceptor.NewClient(fake.NewClientBuilder().WithObjects(tc.hub...).Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, o, opts...)
				},
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
					if !ok {
						t.Fatalf("%s\na %T is created", tc.reason, o)
					}
					review.Status.Allowed = true
					return nil
				},
				SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, o client.Object, _ ...client.SubResourceCreateOption) error {
					issued++
					if request, ok := o.(*authenticationv1.TokenRequest); ok {
						request.Status.Token = tokentest.HubSecret
					}
					return nil
				},
			})
			imp := anImport()
			imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{
				Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount,
				Google: &fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: tokentest.Identity(server, "")},
			}
			r := &kubeconfigs{
				hubObjects: &hubObjects{hub: hub, live: hub}, clock: clock, tokens: minted, places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
			}
			token, _, err := r.minted(t.Context(), newScope(imp), imp.Spec.KubeconfigSource())
			if tc.want == "" {
				if err != nil || token != "federated" || issued != 1 || cloud.Requests.Load() != 1 {
					t.Errorf("%s\nwant a token, got %q, %v", tc.reason, token, err)
				}
				return
			}
			problem, ok := errors.AsType[*condition.Error](err)
			if !ok || problem.Reason != tc.want || !isWithdrawn(err) {
				t.Fatalf("%s\nwant %s, and what there is withdrawn, got %v", tc.reason, tc.want, err)
			}
			if issued > 0 || cloud.Requests.Load() > 0 {
				t.Errorf("%s\n%d tokens were requested from the hub, and %d from the cloud", tc.reason, issued, cloud.Requests.Load())
			}
			if tc.want == notAllowed && !strings.Contains(err.Error(), "fleet.masthead.dev/import-credentials=import-uid") {
				t.Errorf("%s\nthe message does not say what to add: %v", tc.reason, err)
			}
		})
	}
}

// TestKubeconfigWithExecIsRefused: the attacker makes the imported cluster's kubeconfig run a program in the hub.
func TestKubeconfigWithExecIsRefused(t *testing.T) {
	r, s, facts := &kubeconfigs{}, newScope(&fleetv1alpha1.ClusterImport{}), &reflection.Facts{}
	kubeconfig := `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://cluster.example.org"}}]
users: [{name: u, user: %s}]
`
	for name, user := range map[string]string{
		"Exec":          `{exec: {apiVersion: client.authentication.k8s.io/v1, command: kubelogin}}`,
		"AuthProvider":  `{auth-provider: {name: gcp}}`,
		"Impersonation": `{token: t, as: admin}`,
		"File":          `{tokenFile: /var/run/secrets/token}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.sanitised(fmt.Appendf(nil, kubeconfig, user), s, facts)
			problem, ok := errors.AsType[*condition.Error](err)
			if !ok || problem.Reason != fleetv1alpha1.ReasonKubeconfigRefused {
				t.Errorf("sanitised(...): want %s, got %v", fleetv1alpha1.ReasonKubeconfigRefused, err)
			}
		})
	}
	content, err := r.sanitised(fmt.Appendf(nil, kubeconfig, "{token: t}"), s, facts)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := credentials.Parse(content, credentials.Options{}); err != nil || parsed.Token() != "t" {
		t.Errorf("what is left of a good kubeconfig works: %v", err)
	}
}
