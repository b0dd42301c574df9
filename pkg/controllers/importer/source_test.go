// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token/tokentest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// keeps gives the Secret of the source other data, and leaves its label.
func (w *accountWorld) keeps(data map[string][]byte) {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.imp.Namespace, Name: "token"}, secret); err != nil {
		w.t.Fatal(err)
	}
	secret.Data = data
	if err := w.hub.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

// TestCredentialsOfAnotherSourceGo: the spec names another source, which provides nothing yet. If the first one were
// withdrawn, Masthead would not notice, because it is no longer read.
func TestCredentialsOfAnotherSourceGo(t *testing.T) {
	const notFound, unavailable = fleetv1alpha1.ReasonCredentialsNotFound, fleetv1alpha1.ReasonServiceAccountTokenUnavailable
	toProvider := func(w *accountWorld) { w.imp.Spec.Kubeconfig.Source = fleetv1alpha1.KubeconfigSourceProvider }
	toKey := func(key string) func(*accountWorld) {
		return func(w *accountWorld) {
			w.imp.Spec.Kubeconfig.TokenSecretRef = &fleetv1alpha1.SecretKeyReference{Name: "token", Key: key}
		}
	}
	// Of the servers, the operator allows one.
	const refused = fleetv1alpha1.ReasonKubeconfigRefused
	to := func(host string) func(*accountWorld) {
		return func(w *accountWorld) {
			w.imp.Spec.Kubeconfig.Server = &fleetv1alpha1.ImportServer{URL: fleetv1alpha1.HTTPSURL("https://" + host)}
			w.r.servers = token.Allowed{{Scheme: "https", Host: "b"}}
		}
	}
	fails := func(w *accountWorld) {
		toKey("second")(w)
		hub, ok := w.hub.(client.WithWatch)
		if !ok {
			w.t.Fatalf("got a %T", w.hub)
		}
		w.r.live = interceptor.NewClient(hub, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if key.Name == "token" {
					return errors.New("the hub fails")
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
	}
	exchanged := func(w *accountWorld) {
		w.keeps(map[string][]byte{"second": []byte("of-the-second")})
		secret, _ := w.secret()
		secret.Data[kubeconfigKey] = []byte(strings.Replace(string(secret.Data[kubeconfigKey]), ofSource, "of-another", 1))
		if err := w.hub.Update(w.t.Context(), secret); err != nil {
			w.t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		account *fleetv1alpha1.ServiceAccountReference
		change  func(*accountWorld)
		// stopped means that the pass stops before it has observed the cluster.
		stopped     bool
		want, holds string
	}{
		"Provider":      {reason: "Nothing is published yet.", change: toProvider, want: notFound},
		"Key":           {reason: "There is nothing under the key.", change: toKey("third"), want: notFound},
		"HubFails":      {reason: "How long the hub fails is not known.", change: fails, want: notFound},
		"Gives":         {reason: "It is the same Secret, with what the other source gives.", change: toKey("second"), want: written, holds: "of-the-second"},
		"StoppedBefore": {reason: "A stopped import does not keep them either.", change: toProvider, stopped: true, want: notFound},
		"StoppedNone": {
			reason: "The spec requests no kubeconfig.", stopped: true, want: fleetv1alpha1.ReasonKubeconfigNotRequested,
			change: func(w *accountWorld) {
				w.imp.Spec.Kubeconfig = &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceNone}
			},
		},
		"Account":        {reason: "Its token was requested with them.", account: new(importReader), change: toProvider, want: notFound},
		"AccountStopped": {reason: "The same.", account: new(importReader), change: toProvider, stopped: true, want: unavailable},
		"AccountGives": {
			reason: "Another token is requested, with what the other source gives.", account: new(importReader), want: written, holds: "of-the-account-2",
			change: func(w *accountWorld) {
				toKey("second")(w)
				w.grants("of-the-account-2")
			},
		},
		"AccountRestarted": {
			reason: "The same, where the Secret has the first one.", account: new(importReader), want: written, holds: "of-the-account-2",
			change: func(w *accountWorld) {
				toKey("second")(w)
				w.start()
				w.grants("of-the-account-2")
			},
		},
		"Same": {
			reason: "The source is the same, and will give others.", want: notFound, holds: ofSource,
			change: func(w *accountWorld) { w.keeps(map[string][]byte{"second": []byte("of-the-second")}) },
		},
		"SameStopped":   {reason: "Nothing has changed.", change: func(*accountWorld) {}, stopped: true, want: written, holds: ofSource},
		"Server":        {reason: "The operator does not allow the server.", change: to("a"), want: refused},
		"ServerStopped": {reason: "Nor does it while something else stops the import.", change: to("a"), stopped: true, want: refused},
		"ServerAndSourceFails": {reason: "Nor while the source gives nothing.", want: refused, change: func(w *accountWorld) {
			toKey("third")(w)
			to("a")(w)
		}},
		"OtherServer": {
			reason: "Its kubeconfig is for another address.", change: to("b"), stopped: true, want: notFound,
		},
		"Exchanged":        {reason: "Another user replaced the credentials: their source is not known.", change: exchanged, want: notFound},
		"ExchangedStopped": {reason: "The source was not read yet.", change: exchanged, stopped: true, want: written, holds: "of-another"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccountWorld(t)
			w.keeps(map[string][]byte{"token": []byte(ofSource), "second": []byte("of-the-second")})
			w.imp.Spec.Kubeconfig.ServiceAccountRef = tc.account
			if _, got := w.look(); got != written {
				t.Fatalf("want %s, got %s", written, got)
			}
			before, _ := w.secret()
			tc.change(w)
			var got string
			if tc.stopped {
				res, err := w.r.keepKubeconfig(t.Context(), newScope(w.imp), observation{}, result{})
				if err != nil {
					t.Fatal(err)
				}
				got = w.reason(res)
			} else {
				_, got = w.look()
			}
			if got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
			if after := w.holds(tc.reason, tc.holds); after != nil && after.UID != before.UID {
				t.Errorf("%s\nwant the same Secret", tc.reason)
			}
		})
	}
}

// TestAccountTokenIsServedWhileTheSourceFails: a token of the account works, and the source provides nothing with which
// another one could be requested. It is used until it expires, also by a manager that was started meanwhile.
func TestAccountTokenIsServedWhileTheSourceFails(t *testing.T) {
	for name, restarted := range map[string]bool{"Runs": false, "Restarted": true} {
		t.Run(name, func(t *testing.T) {
			w := newAccountWorld(t)
			first, _ := w.look()
			w.requests()
			w.keeps(nil)
			if restarted {
				w.start()
			}
			p, got := w.look()
			if got != written || string(p.k.content) != string(first.k.content) {
				t.Fatalf("want the token to be used, got %s", got)
			}
			if c := meta.FindStatusCondition(w.imp.Status.Conditions, fleetv1alpha1.ConditionKubeconfigReady); !strings.Contains(c.Message, "has no data under the key") {
				t.Errorf("want the message to say what the source lacks, got %s", c.Message)
			}
			if w.imp.Status.Kubeconfig == nil || p.requeueAfter() > workload.Retry {
				t.Errorf("want the kubeconfig in the status, and another look soon, got %v, one in %s", w.imp.Status.Kubeconfig, p.requeueAfter())
			}
			w.wantRequests("There is nothing to ask with.")
			w.clock.Step(time.Hour)
			if p, got = w.look(); got == written || p.k.content != nil {
				t.Errorf("want a token that has expired not to be used, got %s", got)
			}
		})
	}
}

// TestSourcesDiffer: every field that names a source distinguishes it from others, and nothing else does.
func TestSourcesDiffer(t *testing.T) {
	ref := fleetv1alpha1.SecretKeyReference{Name: "a", Key: "b"}
	google := func(g fleetv1alpha1.GoogleServiceAccount) *fleetv1alpha1.ImportKubeconfig {
		return &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceGoogleServiceAccount, Google: &g}
	}
	federated := func(change func(*fleetv1alpha1.GoogleWorkloadIdentity)) *fleetv1alpha1.ImportKubeconfig {
		g := &fleetv1alpha1.GoogleWorkloadIdentity{ServiceAccountName: "a", Audience: tokentest.PoolProvider}
		change(g)
		return google(fleetv1alpha1.GoogleServiceAccount{WorkloadIdentity: g})
	}
	azure := func(change func(*fleetv1alpha1.AzureServicePrincipal)) *fleetv1alpha1.ImportKubeconfig {
		a := &fleetv1alpha1.AzureServicePrincipal{TenantID: "t", ClientID: "c", ClientSecretRef: ref}
		change(a)
		return &fleetv1alpha1.ImportKubeconfig{Source: fleetv1alpha1.KubeconfigSourceAzureServicePrincipal, Azure: a}
	}
	seen := map[string]int{}
	for i, k := range []*fleetv1alpha1.ImportKubeconfig{
		nil,
		{Source: fleetv1alpha1.KubeconfigSourceNone},
		{User: fleetv1alpha1.KubeconfigUserAdmin},
		{Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &ref},
		{Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "a", Key: "c"}},
		{Source: fleetv1alpha1.KubeconfigSourceToken, TokenSecretRef: &fleetv1alpha1.SecretKeyReference{Name: "ab"}},
		google(fleetv1alpha1.GoogleServiceAccount{KeySecretRef: ref}),
		federated(func(*fleetv1alpha1.GoogleWorkloadIdentity) {}),
		federated(func(g *fleetv1alpha1.GoogleWorkloadIdentity) { g.ServiceAccountName = "b" }),
		federated(func(g *fleetv1alpha1.GoogleWorkloadIdentity) { g.Audience += "2" }),
		federated(func(g *fleetv1alpha1.GoogleWorkloadIdentity) { g.ServiceAccountEmail = "e" }),
		federated(func(g *fleetv1alpha1.GoogleWorkloadIdentity) { g.STSEndpoint = "https://sts.example.org" }),
		federated(func(g *fleetv1alpha1.GoogleWorkloadIdentity) { g.CredentialsEndpoint = "https://iam.example.org" }),
		azure(func(*fleetv1alpha1.AzureServicePrincipal) {}),
		azure(func(a *fleetv1alpha1.AzureServicePrincipal) { a.TenantID = "u" }),
		azure(func(a *fleetv1alpha1.AzureServicePrincipal) { a.ClientID = "d" }),
		azure(func(a *fleetv1alpha1.AzureServicePrincipal) { a.AuthorityHost = "https://entra.example.org" }),
		azure(func(a *fleetv1alpha1.AzureServicePrincipal) { a.ClientSecretRef.Name = "c" }),
		azure(func(a *fleetv1alpha1.AzureServicePrincipal) {
			a.ClientSecretRef, a.WorkloadIdentity = fleetv1alpha1.SecretKeyReference{}, &fleetv1alpha1.AzureWorkloadIdentity{ServiceAccountName: "a"}
		}),
	} {
		source := describeSource(fleetv1alpha1.ClusterImportSpec{Kubeconfig: k})
		if before, known := seen[source]; known {
			t.Errorf("the sources %d and %d are one: %s", before, i, source)
		}
		seen[source] = i
	}
	for reason, k := range map[string]*fleetv1alpha1.ImportKubeconfig{
		"The default is what is meant without it.": {Source: fleetv1alpha1.KubeconfigSourceProvider, User: fleetv1alpha1.KubeconfigUserUser},
		"The account has a mark of its own.":       {ServiceAccountRef: new(importReader)},
	} {
		if source := describeSource(fleetv1alpha1.ClusterImportSpec{Kubeconfig: k}); seen[source] != 0 || source == "" {
			t.Errorf("%s\ngot another source: %s", reason, source)
		}
	}
}
