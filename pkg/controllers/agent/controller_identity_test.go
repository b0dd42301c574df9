// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// ServiceAccount creates a ServiceAccount in the target namespace of the hub.
func (f *fixture) serviceAccount(name string) *corev1.ServiceAccount {
	f.T.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.Target, Name: name}}
	f.Create(f.Hub, sa)
	return sa
}

// getToken returns a token of a ServiceAccount of the hub.
func (f *fixture) getToken(sa *corev1.ServiceAccount) string {
	f.T.Helper()
	request := &authenticationv1.TokenRequest{}
	if err := f.Hub.SubResource("token").Create(f.Ctx, sa, request); err != nil {
		f.T.Fatal(err)
	}
	return request.Status.Token
}

// credentialsSecret stores a kubeconfig in a Secret of the workload cluster.
func (f *fixture) credentialsSecret(namespace, name string, kubeconfig []byte) {
	f.T.Helper()
	if err := f.Workload.Create(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		f.T.Fatal(err)
	}
	data := map[string][]byte{fleetv1alpha1.CredentialsSecretKey: kubeconfig}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	err := f.Workload.Create(f.Ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		f.Edit(f.Workload, secret, func() { secret.Data = data })
		return
	}
	if err != nil {
		f.T.Fatal(err)
	}
}

// requirementRights are those of the seed's Role agent-requirement.
func (f *fixture) requirementRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
		{APIGroups: []string{f.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}
}

// grant grants rights in a namespace of the hub, and waits until they take effect.
func (f *fixture) grant(namespace, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	f.T.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	f.Create(f.Hub, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	f.Create(f.Hub, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{subject},
	})
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: subject.Name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0],
		},
	}
	if len(rules[0].ResourceNames) > 0 {
		spec.ResourceAttributes.Name = rules[0].ResourceNames[0]
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	case rbacv1.GroupKind:
		spec.User, spec.Groups = "anybody", []string{subject.Name}
	}
	f.Within("the right is in force", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := f.Hub.Create(f.Ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		return errors.New("it is denied")
	})
}

func newSubject(sa *corev1.ServiceAccount) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: sa.Namespace, Name: sa.Name}
}

// impatient makes the agent reread credentials soon.
func impatient(o *Options) {
	o.CredentialsPoll, o.CredentialsRetry = 100*time.Millisecond, 100*time.Millisecond
}

func TestAuthenticatingToTheCentralClusterDefaultCredentialsSecret(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) {
		class.Spec.Agent.Identity = &fleetv1alpha1.HubIdentity{CredentialsSecretName: class.Name + "-agent1-creds"}
	})
	f.options = impatient
	name := f.Class + "-agent1-creds"
	agent1, agent2 := f.serviceAccount("agent1"), f.serviceAccount("agent2")
	// Following the kubeconfig's server would leak the token.
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a request was sent to the kubeconfig's server: %s", r.URL)
	}))
	defer elsewhere.Close()
	f.start()
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.WaitForMessage("db", fleetv1alpha1.ReasonCredentialsMissing, name, fleetv1alpha1.AgentNamespace)

	use := func(kubeconfig []byte) { f.credentialsSecret(fleetv1alpha1.AgentNamespace, name, kubeconfig) }
	use(agenttest.AsUser(map[string]any{"exec": map[string]any{"command": "sh"}}, nil))
	f.WaitForMessage("db", fleetv1alpha1.ReasonCredentialsInvalid, "exec")
	use(agenttest.AsUser(map[string]any{"token": "x"}, map[string]any{"proxy-url": "http://elsewhere"}))
	f.WaitForMessage("db", fleetv1alpha1.ReasonCredentialsInvalid, "proxy-url")
	use(agenttest.AsToken("stale"))
	f.WaitForMessage("db", fleetv1alpha1.ReasonCredentialsRejected, name)

	token := f.getToken(agent1)
	use(agenttest.AsUser(map[string]any{"token": token}, map[string]any{"server": elsewhere.URL}))
	f.WaitForMessage("db", fleetv1alpha1.ReasonHubForbidden, "system:serviceaccount:"+f.Target+":agent1", "patch mysqlinstances."+f.Group, fmt.Sprintf("namespace %q", f.Target), name)
	f.MustNotExist(f.Target, "db")

	f.grant(f.Target, "agent-requirement", newSubject(agent1), f.requirementRights()...)
	f.TouchClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.CreateConnectionSecret("db-conn", f.WaitForPushed("db"), "one")
	f.Within("the connection Secret arrives", func() error {
		return f.Workload.Get(f.Ctx, client.ObjectKey{Namespace: f.Namespace, Name: "db-conn"}, &corev1.Secret{})
	})

	// Rotated credentials are used from then on.
	use(agenttest.AsToken(f.getToken(agent2)))
	f.Within("the new user is used", func() error {
		f.TouchClaim("db")
		c := propagation.AgentSynced(f.MustGetClaim("db"))
		if c["reason"] != fleetv1alpha1.ReasonHubForbidden || !strings.Contains(fmt.Sprint(c["message"]), ":agent2") {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})
	f.grant(f.Target, "agent2", newSubject(agent2), f.requirementRights()...)
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
}

func TestAuthenticatingToTheCentralClusterNamespaceCredentials(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = impatient
	bar := f.CreateHubNamespace(f.Class + "-bar")
	agent1 := f.serviceAccount("agent1")
	f.grant(bar, "agent-requirement", newSubject(agent1), f.requirementRights()...)
	f.credentialsSecret(f.Namespace, "my-other-sa-creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{
		fleetv1alpha1.TargetNamespaceAnnotation: bar, fleetv1alpha1.CredentialsSecretNameAnnotation: "my-other-sa-creds",
	})
	f.start()
	// The class allows no target to be chosen. With their own credentials, owners reach what these permit.
	f.CreateClaim("db")
	f.WaitForPushedTo(bar, "db")

	// Nothing more: the class's own target is not allowed for them.
	f.targetAnnotation(f.Target)
	f.CreateClaim("other")
	f.WaitForMessage("other", fleetv1alpha1.ReasonHubForbidden, ":agent1", fmt.Sprintf("namespace %q", f.Target))
	f.MustNotExist(f.Target, "other")
	f.targetAnnotation("kube-system")
	f.CreateClaim("system")
	f.WaitForSynced("system", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)

	// A class can limit them further.
	f.targetAnnotation(bar)
	f.WaitForSynced("other", fleetv1alpha1.ReasonSynced)
	f.editClass(func(a *fleetv1alpha1.AgentSpec) {
		a.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{List: []string{"elsewhere"}}
	})
	f.WaitForSynced("other", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.AllowedTargetNamespaces = nil })

	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "../x"})
	f.WaitForSynced("other", fleetv1alpha1.ReasonCredentialsInvalid)
	// Without their own credentials, they use the manager's, which only reach what the class allows.
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: ""})
	f.WaitForSynced("other", fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
}

func TestAuthenticatingToTheCentralClusterClientCertificate(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	user, err := f.lane.hub.AddUser(envtest.User{Name: f.Class}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := user.Config()
	f.grant(f.Target, "agent-requirement", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.Class}, f.requirementRights()[1])
	f.credentialsSecret(f.Namespace, "cert", agenttest.AsUser(map[string]any{
		"client-certificate-data": cfg.CertData, "client-key-data": cfg.KeyData,
	}, map[string]any{"server": "https://hub.example.org"}))
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "cert"})
	f.start()
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.CreateConnectionSecret("db-conn", f.WaitForPushed("db"), "one")
	f.MarkReady("db", "a")
	f.WaitForMessage("db", fleetv1alpha1.ReasonHubForbidden, fmt.Sprintf("user %q", f.Class), "get secrets")
}

// managerUser makes the manager a ServiceAccount of the hub with exactly its usual rights.
func (f *fixture) managerUser() rbacv1.Subject {
	f.T.Helper()
	sa := f.serviceAccount("manager")
	f.HubConfig = rest.AnonymousClientConfig(f.HubConfig)
	f.HubConfig.BearerToken = f.getToken(sa)
	f.Create(f.Hub, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Class}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"", "apiextensions.crossplane.io", "apiextensions.k8s.io", fleetv1alpha1.GroupVersion.Group, f.Group},
			Resources: []string{"secrets", "namespaces", "compositeresourcedefinitions", "customresourcedefinitions", "enrollmentclasses", "mysqlinstances"},
			Verbs:     []string{"get", "list", "watch"},
		},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}})
	f.Create(f.Hub, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class}, Subjects: []rbacv1.Subject{newSubject(sa)},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.Class},
	})
	return newSubject(sa)
}

func TestAuthorizationCentralClusterImpersonatedServiceAccount(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t, func(class *fleetv1alpha1.EnrollmentClass) {
		class.Spec.Agent.Identity = &fleetv1alpha1.HubIdentity{ServiceAccountRef: &fleetv1alpha1.ServiceAccountReference{
			Namespace: class.Spec.Agent.DefaultTargetNamespace, Name: "agent1",
		}}
	})
	manager := f.managerUser()
	f.serviceAccount("agent1")
	f.start()
	f.CreateClaim("db")
	f.WaitForMessage("db", fleetv1alpha1.ReasonImpersonationForbidden, `"agent1"`, fmt.Sprintf("namespace %q", f.Target))

	// The right to impersonate this one ServiceAccount, and no group, suffices.
	f.grant(f.Target, "impersonate", manager, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"agent1"}, Verbs: []string{"impersonate"},
	})
	f.Within("the ServiceAccount lacks the right", func() error {
		f.TouchClaim("db")
		if c := propagation.AgentSynced(f.MustGetClaim("db")); c["reason"] != fleetv1alpha1.ReasonHubForbidden || !strings.Contains(fmt.Sprint(c["message"]), ":agent1") {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})

	// It has the groups of a ServiceAccount, too.
	f.grant(f.Target, "agent-requirement", rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + f.Target,
	}, f.requirementRights()...)
	f.Within("the claim is pushed", func() error {
		f.TouchClaim("db")
		_, err := f.GetClaim(f.Hub, f.Target, "db")
		return err
	})
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
}

// TestTenancyTakenNamesCannotBeEnumerated compares what is reported to an identity without rights about a taken name
// and about a free one, and what its claims look like.
func TestTenancyTakenNamesCannotBeEnumerated(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	secret := f.CreateHubNamespace(f.Class + "-secret")
	agent1 := f.serviceAccount("agent1")
	f.credentialsSecret(f.Namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{
		fleetv1alpha1.TargetNamespaceAnnotation: secret, fleetv1alpha1.CredentialsSecretNameAnnotation: "creds",
	})
	taken := f.NewClaim(secret, "taken")
	taken.SetAnnotations(ownership.Source{Identifier: "another-cluster", Namespace: "theirs"}.Annotations())
	f.Create(f.Hub, taken)
	former := f.NewClaim(secret, "former")
	former.SetAnnotations(f.source().Annotations())
	annotations := ownership.Residence{Cluster: types.UID(f.KubeSystemUID()), Namespace: "earlier"}.Annotations()
	maps.Copy(annotations, former.GetAnnotations())
	former.SetAnnotations(annotations)
	f.Create(f.Hub, former)
	f.start()
	f.inHub(taken)
	f.inHub(former)
	looks := map[string]string{}
	for _, name := range []string{"free", "taken", "former"} {
		f.CreateClaim(name)
		f.WaitForMessage(name, fleetv1alpha1.ReasonHubForbidden, ":agent1")
		f.WaitForIdle()
		claim := f.MustGetClaim(name)
		condition := propagation.AgentSynced(claim)
		look := fmt.Sprint(condition["status"], condition["reason"], condition["message"], claim.GetFinalizers(), claim.GetAnnotations())
		looks[name] = strings.ReplaceAll(look, string(claim.GetUID()), "its UID")
	}
	if strings.Contains(looks["taken"], "another-cluster") {
		t.Errorf("the holder is disclosed: %v", looks["taken"])
	}
	if looks["taken"] != looks["free"] || looks["former"] != looks["free"] {
		t.Errorf("want claims of a taken name to look like one of a free name, got %v", looks)
	}

	// Nor by a record of a former object.
	for name := range looks {
		claim := f.MustGetClaim(name)
		f.Edit(f.Workload, claim, func() { ownership.SetRecord(claim, secret+"/lost/"+string(claim.GetUID())) })
		f.WaitForMessage(name, fleetv1alpha1.ReasonHubObjectDeleted, "lost")
	}
	for name := range looks {
		if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, name)); err != nil {
			t.Fatal(err)
		}
		f.WaitForGone(f.Workload, f.Namespace, name)
	}

	// The deletion of what was never pushed needs no right.
	f.CreateClaim("free")
	f.WaitForMessage("free", fleetv1alpha1.ReasonHubForbidden, ":agent1")
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "free")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "free")

	// An identity that may read learns who has a name.
	f.CreateClaim("taken")
	f.WaitForMessage("taken", fleetv1alpha1.ReasonHubForbidden, ":agent1")
	f.grant(secret, "read", newSubject(agent1), rbacv1.PolicyRule{
		APIGroups: []string{f.Group}, Resources: []string{"mysqlinstances"}, Verbs: []string{"get"},
	})
	f.TouchClaim("taken")
	f.WaitForMessage("taken", fleetv1alpha1.ReasonConflict, "another-cluster")
}

// An object created with a namespace's credentials is deleted with these, although the namespace no longer names them.
func TestTenancyDeletionHasTheRightsOfTheCreation(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = impatient
	agent1 := f.serviceAccount("agent1")
	rule := f.requirementRights()[1]
	rule.Verbs = []string{"get", "create", "patch"}
	f.grant(f.Target, "agent-requirement", newSubject(agent1), rule)
	f.credentialsSecret(f.Namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "creds"})
	f.start()
	for _, name := range []string{"db", "other"} {
		f.CreateClaim(name)
		hub := f.WaitForPushed(name)
		if got, want := hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation], "secret/"+f.Namespace+"/creds"; got != want {
			t.Errorf("want the creator of %s to be named %q, got %q", name, want, got)
		}
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}

	f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: ""})
	f.TouchClaim("db")
	f.Within("the class's identity carries the claim now", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if size, _, _ := unstructured.NestedInt64(hub.Object, "spec", "storageGB"); err != nil || size != 21 {
			return fmt.Errorf("the size is %d: %w", size, err)
		}
		return nil
	})
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForMessage("db", fleetv1alpha1.ReasonHubForbidden, ":agent1", "delete")
	f.WaitForPushed("db")
	f.restart()
	f.lookedAt(2)
	f.WaitForMessage("db", fleetv1alpha1.ReasonHubForbidden, ":agent1", "delete")
	f.WaitForPushed("db")

	// Nor are missing credentials replaced by the class's rights while the namespace exists.
	if err := f.Workload.Delete(f.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "creds"}}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.lookedAt(2)
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "other")); err != nil {
		t.Fatal(err)
	}
	f.WaitForMessage("other", fleetv1alpha1.ReasonCredentialsMissing, "was created by", "creds")
	f.WaitForPushed("other")

	// Granting the right, or restoring the credentials, has it deleted.
	rule.Verbs = []string{"delete"}
	f.grant(f.Target, "agent-delete", newSubject(agent1), rule)
	f.credentialsSecret(f.Namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
	f.AnnotateClaim("db", "example.org/look", "again")
	for _, name := range []string{"db", "other"} {
		f.WaitForGone(f.Workload, f.Namespace, name)
		f.WaitForGone(f.Hub, f.Target, name)
	}
}

func TestDeletionDoesNotWaitForCredentialsThatAreGone(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"LastOnes": false, "ClassIdentity": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepareFixture(t)
			f.options = impatient
			agent1, agent2 := f.serviceAccount("agent1"), f.serviceAccount("agent2")
			f.grant(f.Target, "agent-requirement", newSubject(agent1), f.requirementRights()...)
			f.credentialsSecret(f.Namespace, "creds", agenttest.AsToken(f.getToken(agent1)))
			f.annotateNamespace(map[string]string{fleetv1alpha1.CredentialsSecretNameAnnotation: "creds"})
			if !restarted {
				// The class's identity has no rights, which shows who deletes.
				f.credentialsSecret(fleetv1alpha1.AgentNamespace, f.Class, agenttest.AsToken(f.getToken(agent2)))
				f.editClass(func(a *fleetv1alpha1.AgentSpec) {
					a.Identity = &fleetv1alpha1.HubIdentity{CredentialsSecretName: f.Class}
				})
			}
			f.start()
			f.CreateClaim("db")
			f.WaitForPushed("db")
			f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

			// A deleted namespace loses its Secrets before its claims, which wait for us.
			if err := f.Workload.Delete(f.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "creds"}}); err != nil {
				t.Fatal(err)
			}
			f.Within("the credentials are missed", func() error {
				f.TouchClaim("db")
				if c := propagation.AgentSynced(f.MustGetClaim("db")); c["reason"] != fleetv1alpha1.ReasonCredentialsMissing {
					return fmt.Errorf("the condition is %v", c)
				}
				return nil
			})
			if restarted {
				f.restart()
				// Without the credentials, only the deletion of the namespace lets the class's identity delete for it.
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
				if err := f.Workload.Delete(f.Ctx, ns); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
				t.Fatal(err)
			}
			f.WaitForGone(f.Workload, f.Namespace, "db")
			f.WaitForGone(f.Hub, f.Target, "db")
		})
	}
}

func TestNothingIsDoneInTheHubWithoutAnIdentity(t *testing.T) {
	obj := &corev1.Secret{}
	for name, err := range map[string]error{
		"get":    hubaccess.API{}.Get(t.Context(), client.ObjectKey{}, obj),
		"list":   hubaccess.API{}.List(t.Context(), &corev1.SecretList{}),
		"create": hubaccess.API{}.Create(t.Context(), obj),
		"update": hubaccess.API{}.Update(t.Context(), obj),
		"patch":  hubaccess.API{}.Patch(t.Context(), obj, client.MergeFrom(obj)),
		"apply":  hubaccess.API{}.Apply(t.Context(), nil),
		"delete": hubaccess.API{}.Delete(t.Context(), obj),
		"all":    hubaccess.API{}.DeleteAllOf(t.Context(), obj),
	} {
		if !errors.Is(err, hubaccess.ErrNoIdentity) {
			t.Errorf("%s: want it refused, got %v", name, err)
		}
	}
}
