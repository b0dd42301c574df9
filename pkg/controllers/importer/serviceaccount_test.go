// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token/tokentest"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// The values that the tests compare with.
const (
	ofSource    = "of-the-source"
	accountPath = "/api/v1/namespaces/masthead-import/serviceaccounts/reader/token"
)

var importReader = fleetv1alpha1.ServiceAccountReference{Namespace: "masthead-import", Name: "reader"}

// accountWorld is a hub in memory with an import, whose cluster is a fake server.
type accountWorld struct {
	t      *testing.T
	hub    client.Client
	clock  *clocktesting.FakeClock
	server *httptest.Server
	minted *token.Tokens
	r      *kubeconfigs
	imp    *fleetv1alpha1.ClusterImport

	mu sync.Mutex
	// answer is what the cluster answers to a request for a token.
	answer http.HandlerFunc
	// received are the requests that the cluster received: the path, and the user.
	received []string
}

func newAccountWorld(t *testing.T) *accountWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	imp, secret := importWithToken("true")
	imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
	imp.Spec.Pause = fleetv1alpha1.ImportPauseStrict
	secret.Data["token"] = []byte(ofSource)
	w := &accountWorld{t: t, imp: imp, clock: clocktesting.NewFakeClock(time.Now()), hub: fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()}
	w.server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.received = append(w.received, r.URL.Path+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		answer := w.answer
		w.mu.Unlock()
		answer(rw, r)
	}))
	t.Cleanup(w.server.Close)
	w.grants("of-the-account")
	w.start()
	return w
}

// start starts or restarts the manager.
func (w *accountWorld) start() {
	w.t.Helper()
	var err error
	if w.minted, err = token.New(nil, nil, w.clock); err != nil {
		w.t.Fatal(err)
	}
	w.r = &kubeconfigs{
		hubObjects: &hubObjects{hub: w.hub, live: w.hub}, clock: w.clock, creds: credentials.Options{AllowLoopback: true}, tokens: w.minted, accounts: w.minted.OfAccounts(),
		clusters: workload.NewClusters(w.clock, nil), places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
	}
}

// answers sets how the cluster answers from now on.
func (w *accountWorld) answers(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// grants makes the cluster issue a token for an hour.
func (w *accountWorld) grants(token string) { w.answers(granted(token, time.Hour)) }

func granted(token string, life time.Duration) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: token, ExpirationTimestamp: metav1.NewTime(time.Now().Add(life)),
		}})
	}
}

func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, ofSource, code) }
}

// requests are those that the cluster got since the last call.
func (w *accountWorld) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	received := w.received
	w.received = nil
	return received
}

// attempt is how the importer's phase for the kubeconfig ended.
type attempt struct {
	result
	k kubeconfig
}

// look runs the importer's phase for the kubeconfig, and returns how it ended and the reason of KubeconfigReady.
func (w *accountWorld) look() (attempt, string) {
	w.t.Helper()
	k, res, err := w.r.kubeconfig(w.t.Context(), newScope(w.imp), w.observation())
	if err != nil {
		w.t.Fatal(err)
	}
	return attempt{res, k}, w.reason(res)
}

// observation is what is observed of the cluster.
func (w *accountWorld) observation() observation {
	w.t.Helper()
	at, err := url.Parse(w.server.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	port, _ := strconv.ParseInt(at.Port(), 10, 32)
	return observation{facts: &reflection.Facts{
		Endpoint:             reflection.Endpoint{Host: at.Hostname(), Port: int32(port)},
		CertificateAuthority: w.authority(),
	}}
}

// authority is the server's, as clouds show it.
func (w *accountWorld) authority() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}))
}

// reason is that of KubeconfigReady after a pass, whose status is kept. It checks that the message holds no secret.
func (w *accountWorld) reason(res result) string {
	w.t.Helper()
	w.imp.Status = buildStatus(newScope(w.imp), res, w.clock.Now())
	c := meta.FindStatusCondition(w.imp.Status.Conditions, fleetv1alpha1.ConditionKubeconfigReady)
	if c == nil {
		return ""
	}
	if strings.Contains(c.Message, ofSource) || strings.Contains(c.Message, "of-the-account") {
		w.t.Errorf("the condition tells a secret: %s", c.Message)
	}
	return c.Reason
}

// secret is the one with the kubeconfig, and the token in it; nil and "" without one.
func (w *accountWorld) secret() (*corev1.Secret, string) {
	w.t.Helper()
	secret := &corev1.Secret{}
	err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.imp.Namespace, Name: ownership.KubeconfigName(w.imp)}, secret)
	if apierrors.IsNotFound(err) {
		return nil, ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	parsed, err := credentials.Parse(secret.Data[kubeconfigKey], w.r.creds)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret, parsed.Token()
}

// holds checks which token others find, and that no credentials of the source are beside it.
func (w *accountWorld) holds(reason, want string) *corev1.Secret {
	w.t.Helper()
	secret, got := w.secret()
	if got != want {
		w.t.Fatalf("%s\nwant the kubeconfig to hold %q, got %q", reason, want, got)
	}
	if secret != nil && want != ofSource && strings.Contains(string(secret.Data[kubeconfigKey]), ofSource) {
		w.t.Errorf("the credentials of the source are in the kubeconfig: %s", secret.Data)
	}
	return secret
}

// rotates gives the source other credentials.
func (w *accountWorld) rotates(token string, label string) {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.imp.Namespace, Name: "token"}, secret); err != nil {
		w.t.Fatal(err)
	}
	secret.Data["token"], secret.Labels[fleetv1alpha1.ImportCredentialsLabel] = []byte(token), label
	if err := w.hub.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

func (w *accountWorld) wantRequests(reason string, want ...string) {
	w.t.Helper()
	if got := w.requests(); !slices.Equal(got, want) {
		w.t.Errorf("%s\nwant the requests %v, got %v", reason, want, got)
	}
}

// tokenIsRefreshed is how long before its end a token is replaced.
const tokenIsRefreshed = 10 * time.Minute

const written = fleetv1alpha1.ReasonKubeconfigWritten

// TestServiceAccountTokensThatAreRefused: regardless of what the cluster answers in place of a token, the credentials
// of the source are not used instead, and the Secret that held them before is deleted. The cluster is left alone for a
// while.
func TestServiceAccountTokensThatAreRefused(t *testing.T) {
	redirected := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(redirected.Close)
	answered := func(text string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(rw, text)
		}
	}
	const (
		notFound, refused    = fleetv1alpha1.ReasonServiceAccountNotFound, fleetv1alpha1.ReasonServiceAccountTokenRefused
		invalid, unavailable = fleetv1alpha1.ReasonServiceAccountTokenInvalid, fleetv1alpha1.ReasonServiceAccountTokenUnavailable
	)
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string
	}{
		"Forbidden":    {"The source may not create tokens.", status(http.StatusForbidden), refused},
		"Unauthorized": {"The cluster does not know the source.", status(http.StatusUnauthorized), refused},
		"NotFound":     {"The ServiceAccount does not exist.", status(http.StatusNotFound), notFound},
		"Overloaded":   {"The request is retried.", status(http.StatusTooManyRequests), unavailable},
		"Broken":       {"The request is retried.", status(http.StatusInternalServerError), unavailable},
		"Unreachable": {"The request is retried.", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, unavailable},
		"NotSupported": {"It is no API server that gives tokens.", status(http.StatusMethodNotAllowed), invalid},
		"Redirect": {"The credentials would go to another host.", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, redirected.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, invalid},
		"Empty":       {"A token is a text.", granted("", time.Hour), invalid},
		"Echo":        {"The Secret would hold the credentials of the source.", granted(ofSource, time.Hour), invalid},
		"Header":      {"A token ends with its line.", granted("of-the-account\r\nImpersonate-User: admin", time.Hour), invalid},
		"Long":        {"A token fits into a header.", granted(strings.Repeat("x", 16<<10+1), time.Hour), invalid},
		"NoExpiry":    {"It would never be replaced.", answered(`{"status":{"token":"of-the-account"}}`), invalid},
		"NoTime":      {"It says nothing.", answered(`{"status":{"token":"of-the-account","expirationTimestamp":"soon"}}`), invalid},
		"Expired":     {"It does not work.", granted("of-the-account", -time.Minute), invalid},
		"Short":       {"It would be requested all the time.", granted("of-the-account", 4*time.Minute), invalid},
		"Forever":     {"A token that need not be replaced was not requested.", granted("of-the-account", 10*365*24*time.Hour), invalid},
		"NoJSON":      {"It is a login page.", answered("<html>" + ofSource), invalid},
		"NeverEnding": {"Its size is bounded. What sends it is the cluster, and nothing of the spec.", answered(`{"status":{"token":"` + strings.Repeat("x", 1<<20)), unavailable},
		"BreaksOff": {"The connection broke. The request is retried.", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "1000")
			rw.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(rw, `{"status":{"token":"of-the-acc`)
		}, unavailable},
		"Nothing": {"The request is retried.", answered(""), unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccountWorld(t)
			w.imp.Spec.Kubeconfig.ServiceAccountRef = nil
			if _, got := w.look(); got != written {
				t.Fatalf("want %s, got %s", written, got)
			}
			w.holds("Nothing else was requested yet.", ofSource)
			w.imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
			w.answers(tc.answer)
			p, got := w.look()
			if got != tc.want || p.k.content != nil {
				t.Errorf("%s\nwant %s and no kubeconfig, got %s", tc.reason, tc.want, got)
			}
			w.holds(tc.reason, "")
			w.wantRequests("The token is requested once, as the source.", accountPath+" "+ofSource)
			if again := p.requeueAfter(); again > workload.Retry {
				t.Errorf("want another look soon, got one in %s", again)
			}
			if _, got := w.look(); got != tc.want {
				t.Errorf("want the reason to stay, got %s", got)
			}
			w.wantRequests("A cluster that gave no token is left alone.")
			w.grants("of-the-account")
			w.clock.Step(workload.Retry)
			if _, got := w.look(); got != written {
				t.Errorf("want another request to a cluster that gives tokens again, got %s", got)
			}
			w.holds("It gives a token now.", "of-the-account")
		})
	}
}

// TestOtherCredentialsGoWhileTheHubFails makes the hub fail when the source's credentials are read, so that no token is
// requested from the cluster.
func TestOtherCredentialsGoWhileTheHubFails(t *testing.T) {
	broken := errors.New("the hub fails")
	for name, tc := range map[string]struct {
		reason string
		before *fleetv1alpha1.ServiceAccountReference
		holds  string
		err    error
	}{
		"OfTheSource":  {"They are not what the spec asks for.", nil, "", nil},
		"OfTheAccount": {"They are, and the request to the hub is retried.", new(importReader), "of-the-account", broken},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccountWorld(t)
			w.imp.Spec.Kubeconfig.ServiceAccountRef = tc.before
			w.look()
			w.imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
			hub, ok := w.hub.(client.WithWatch)
			if !ok {
				t.Fatalf("got a %T", w.hub)
			}
			w.r.live = interceptor.NewClient(hub, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if key.Name == "token" {
						return broken
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			if _, _, err := w.r.kubeconfig(t.Context(), newScope(w.imp), w.observation()); !errors.Is(err, tc.err) {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.err, err)
			}
			w.holds(tc.reason, tc.holds)
		})
	}
}

// TestServiceAccountTokenIsReplacedBeforeItExpires: in the same Secret, with the credentials that the source has by
// then. The credentials of the source rotate meanwhile, which needs no other token.
func TestServiceAccountTokenIsReplacedBeforeItExpires(t *testing.T) {
	w := newAccountWorld(t)
	p, got := w.look()
	if got != written {
		t.Fatalf("want %s, got %s", written, got)
	}
	first := w.holds("The first token.", "of-the-account")
	if want := (p.k.expires.Add(-tokenIsRefreshed)).Sub(w.clock.Now()); p.requeueAfter() > want {
		t.Errorf("want a look before the token expires, in %s, got one in %s", want, p.requeueAfter())
	}
	w.wantRequests("Requested once.", accountPath+" "+ofSource)
	w.rotates("of-the-source-2", "true")
	if _, got := w.look(); got != written {
		t.Errorf("want %s, got %s", written, got)
	}
	w.wantRequests("A token outlives the credentials with which it was requested.")

	w.clock.Step(time.Hour - tokenIsRefreshed + time.Second)
	w.grants("of-the-account-2")
	w.look()
	w.wantRequests("Requested with the credentials that the source has now.", accountPath+" of-the-source-2")
	if second := w.holds("The next token.", "of-the-account-2"); second.UID != first.UID || second.Name != first.Name {
		t.Error("want the same Secret")
	}
	if at := w.imp.Status.Kubeconfig.ExpirationTime; at == nil || at.Sub(w.clock.Now()) < 59*time.Minute {
		t.Errorf("want the status to say when the token expires, got %v", at)
	}

	// The cluster refuses from now on.
	w.answers(status(http.StatusForbidden))
	w.clock.Step(time.Hour - tokenIsRefreshed + time.Second)
	if _, got := w.look(); got != written {
		t.Errorf("want a token that still works to be kept, got %s", got)
	}
	w.rotates("of-the-source-3", "true")
	w.requests()
	w.look()
	w.wantRequests("Other credentials are tried at once.", accountPath+" of-the-source-3")
	w.holds("It works until it expires.", "of-the-account-2")
	w.clock.Step(tokenIsRefreshed)
	if _, got := w.look(); got != fleetv1alpha1.ReasonKubeconfigExpired {
		t.Errorf("want %s, got %s", fleetv1alpha1.ReasonKubeconfigExpired, got)
	}
	w.holds("An expired token does no harm.", "of-the-account-2")
}

// TestServiceAccountTokenSurvivesARestart: the manager that starts knows the token of the Secret, and replaces it in
// time. It does not trust a Secret that differs from what it would write itself.
func TestServiceAccountTokenSurvivesARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(w *accountWorld, secret *corev1.Secret)
		kept   bool
	}{
		"Unchanged": {"No token has to be requested.", nil, true},
		"Expired": {"It does not work any more.", func(w *accountWorld, _ *corev1.Secret) {
			w.clock.Step(time.Hour)
		}, false},
		"AnotherAccount": {"It may do what this one may not.", func(_ *accountWorld, s *corev1.Secret) {
			s.Annotations[fleetv1alpha1.ImportServiceAccountAnnotation] = "kube-system/admin"
		}, false},
		"NoExpiry": {"It would never be replaced.", func(_ *accountWorld, s *corev1.Secret) {
			delete(s.Annotations, fleetv1alpha1.ImportTokenExpirationAnnotation)
		}, false},
		"LaterExpiry": {"No token with such a long lifetime is requested.", func(w *accountWorld, s *corev1.Secret) {
			s.Annotations[fleetv1alpha1.ImportTokenExpirationAnnotation] = w.clock.Now().Add(48 * time.Hour).Format(time.RFC3339)
		}, false},
		"AnotherServer": {"The token of another cluster is not sent to this one.", func(_ *accountWorld, s *corev1.Secret) {
			s.Data[kubeconfigKey] = []byte(strings.Replace(string(s.Data[kubeconfigKey]), "https://127.0.0.1", "https://127.0.0.2", 1))
		}, false},
		"OlderVersion": {"A version that knows no accounts wrote the source's token, and left the marks.", func(_ *accountWorld, s *corev1.Secret) {
			s.Data[kubeconfigKey] = []byte(strings.Replace(string(s.Data[kubeconfigKey]), "of-the-account", ofSource, 1))
		}, false},
		"AnotherUser": {"A certificate is no token of the account.", func(_ *accountWorld, s *corev1.Secret) {
			s.Data[kubeconfigKey] = []byte("apiVersion: v1\nkind: Config\n")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAccountWorld(t)
			w.look()
			secret := w.holds("The first token.", "of-the-account")
			if tc.change != nil {
				tc.change(w, secret)
				if err := w.hub.Update(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
			}
			w.requests()
			w.start()
			w.grants("of-the-account-2")
			if _, got := w.look(); got != written {
				t.Errorf("want %s, got %s", written, got)
			}
			if tc.kept {
				w.wantRequests(tc.reason)
				w.holds(tc.reason, "of-the-account")
				w.clock.Step(time.Hour - 5*time.Minute)
				w.look()
			}
			w.wantRequests(tc.reason, accountPath+" "+ofSource)
			w.holds(tc.reason, "of-the-account-2")
		})
	}
	t.Run("Late", func(t *testing.T) {
		w := newAccountWorld(t)
		w.look()
		w.clock.Step(45 * time.Minute)
		w.start()
		w.look()
		w.requests()
		w.clock.Step(6 * time.Minute)
		w.look()
		w.wantRequests("It is replaced ten minutes before it expires, whenever the manager was started.", accountPath+" "+ofSource)
	})
	t.Run("Refused", func(t *testing.T) {
		w := newAccountWorld(t)
		w.look()
		w.start()
		w.answers(status(http.StatusServiceUnavailable))
		w.clock.Step(time.Hour - 2*time.Minute)
		p, got := w.look()
		if got != written || p.k.content == nil {
			t.Errorf("want the connection to last although no new token can be requested, got %s", got)
		}
		w.holds("It works.", "of-the-account")
	})
}

// TestServiceAccountIsExchanged: the spec names another account, or none, and the source is withdrawn.
func TestServiceAccountIsExchanged(t *testing.T) {
	t.Run("Removed", func(t *testing.T) {
		w := newAccountWorld(t)
		w.look()
		w.imp.Spec.Kubeconfig.ServiceAccountRef = nil
		w.look()
		secret := w.holds("The spec requests the credentials of the source.", ofSource)
		for _, mark := range []string{fleetv1alpha1.ImportServiceAccountAnnotation, fleetv1alpha1.ImportTokenExpirationAnnotation} {
			if value, marked := secret.Annotations[mark]; marked {
				t.Errorf("want nothing of the account on the Secret, got %s", value)
			}
		}
		w.imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
		w.grants("of-the-account-2")
		w.look()
		w.holds("The token is requested again.", "of-the-account-2")
	})
	t.Run("Another", func(t *testing.T) {
		w := newAccountWorld(t)
		w.look()
		w.imp.Spec.Kubeconfig.ServiceAccountRef = &fleetv1alpha1.ServiceAccountReference{Namespace: "masthead-import", Name: "missing"}
		w.answers(status(http.StatusNotFound))
		if _, got := w.look(); got != fleetv1alpha1.ReasonServiceAccountNotFound {
			t.Errorf("want %s, got %s", fleetv1alpha1.ReasonServiceAccountNotFound, got)
		}
		w.holds("The rights of the former account are not those that the spec requests.", "")
	})
	t.Run("SourceWithdrawn", func(t *testing.T) {
		w := newAccountWorld(t)
		w.look()
		w.rotates(ofSource, "false")
		if _, got := w.look(); got != fleetv1alpha1.ReasonCredentialsNotAllowed {
			t.Errorf("want %s, got %s", fleetv1alpha1.ReasonCredentialsNotAllowed, got)
		}
		w.holds("Who takes the label away takes the token, too.", "")
		w.requests()
		w.rotates(ofSource, "true")
		w.look()
		w.wantRequests("The token of before is not given again.", accountPath+" "+ofSource)
	})
	t.Run("StoppedBefore", func(t *testing.T) {
		w := newAccountWorld(t)
		w.imp.Spec.Kubeconfig.ServiceAccountRef = nil
		w.look()
		w.imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
		res, err := w.r.keepKubeconfig(t.Context(), newScope(w.imp), observation{}, result{}) // It stopped before it observed anything.
		if err != nil {
			t.Fatal(err)
		}
		if got := w.reason(res); got != fleetv1alpha1.ReasonServiceAccountTokenUnavailable {
			t.Errorf("want %s, got %s", fleetv1alpha1.ReasonServiceAccountTokenUnavailable, got)
		}
		w.holds("A stopped import does not keep credentials that its spec no longer requests.", "")
	})
	t.Run("Waits", func(t *testing.T) {
		w := newAccountWorld(t)
		w.imp.Spec.Kubeconfig.ServiceAccountRef = nil
		w.look()
		for i := range DefaultMaxConcurrentReconciles {
			w.r.places.Acquire(types.NamespacedName{Namespace: "other", Name: fmt.Sprint(i)}, "other")
			w.r.places.Acquire(types.NamespacedName{Namespace: "others", Name: fmt.Sprint(i)}, "others")
		}
		w.imp.Spec.Kubeconfig.ServiceAccountRef = new(importReader)
		if p, got := w.look(); got != fleetv1alpha1.ReasonServiceAccountTokenUnavailable || !p.waits {
			t.Errorf("want the import to wait for its turn without a worker, got %s", got)
		}
		w.holds("How long it waits is not known.", "")
		w.wantRequests("Other clusters are queried.")
	})
}

// TestHostileClusterGainsNoOthersCredentials: the owner of the imported cluster answers with another owner's token. It
// is written to the kubeconfig for the owner's own cluster, like any token of theirs, and is sent back to them alone.
// The cluster receives only the credentials of its source, for this one path, and its own token for everything else.
func TestHostileClusterGainsNoOthersCredentials(t *testing.T) {
	w := newAccountWorld(t)
	w.answers(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == accountPath {
			granted("of-another-cluster", time.Hour)(rw, r)
			return
		}
		rw.WriteHeader(http.StatusUnauthorized)
	})
	look := func() {
		t.Helper()
		p, _ := w.look()
		if _, err := w.r.access(t.Context(), newScope(w.imp), p.k); err != nil {
			t.Fatal(err)
		}
	}
	look()
	secret := w.holds("It is the cluster's own token as far as anybody knows.", "of-another-cluster")
	if !strings.Contains(string(secret.Data[kubeconfigKey]), w.server.URL) {
		t.Error("want a kubeconfig for this cluster alone")
	}
	const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews of-another-cluster"
	w.wantRequests("The credentials of the source are for one path.", accountPath+" "+ofSource, review)
	for range 60 {
		w.clock.Step(time.Minute)
		look()
	}
	tokens := 0
	for _, request := range w.requests() {
		switch request {
		case accountPath + " " + ofSource:
			tokens++
		case review:
		default:
			t.Errorf("want no other request, got %s", request)
		}
	}
	// The cluster does not accept any token that it issued. Another one is requested every five minutes at most.
	if tokens == 0 || tokens > 12 {
		t.Errorf("want a token that the cluster does not know be replaced now and then, got %d requests", tokens)
	}
}

// TestWhatAClusterDoesWrongStallsNothing: an error that passes by itself does not report that a user has to fix the
// import. An answer that no API server would give does.
func TestWhatAClusterDoesWrongStallsNothing(t *testing.T) {
	for why, want := range map[string]bool{
		fleetv1alpha1.ReasonServiceAccountTokenInvalid: true, fleetv1alpha1.ReasonServiceAccountTokenUnavailable: false,
	} {
		ready := metav1.Condition{Status: metav1.ConditionFalse, Reason: why}
		if stalls := len(stalled(ready)) > 1; stalls != want {
			t.Errorf("%s: stalled: %t", why, stalls)
		}
	}
}

// TestServiceAccountTokensAreCounted: the requests are counted by their result, and not by cluster.
func TestServiceAccountTokensAreCounted(t *testing.T) {
	w := newAccountWorld(t)
	registry := prometheus.NewPedanticRegistry()
	w.minted.Register(registry)
	w.r.accounts = w.minted.OfAccounts()
	for _, answer := range []http.HandlerFunc{status(http.StatusForbidden), status(http.StatusNotFound), granted("", time.Hour), granted("t", time.Hour)} {
		w.answers(answer)
		w.look()
		w.clock.Step(workload.Resync)
	}
	const want = tokentest.RequestsHelp + `masthead_import_token_requests_total{result="failed",token_endpoint="imported-clusters"} 1
masthead_import_token_requests_total{result="granted",token_endpoint="imported-clusters"} 1
masthead_import_token_requests_total{result="refused",token_endpoint="imported-clusters"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
