package linear

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/Khan/genqlient/graphql"

	"ship/bot"
	ql "ship/graphql/linear"
	"ship/session"
)

const (
	// nobody is the name of what asks where no person does.
	nobody = "an automation"
	// somebody is the name of a person of whom Linear tells none.
	somebody = "somebody"
	// maxName of what Linear tells, in bytes.
	maxName = 60
	// costUsers is what ReadUsers costs, in points.
	costUsers = 91
)

// asker is who asks, with the e-mail address by which the code host may know
// them. Linear vouches for id and address; a name can be chosen.
func (w *work) asker(ctx context.Context, by session.Person) (bot.Asker, error) {
	who := bot.Asker{Platform: Platform, ID: by.Login, Name: by.Name, Email: by.Email}
	if by.Login == automation {
		who.Name, who.Email = nobody, ""
		return who, nil
	}
	if who.Email != "" {
		return who, nil
	}
	u, err := w.user(ctx, by.Login)
	if err != nil {
		return bot.Asker{}, err
	}
	who.Name, who.Email = cmp.Or(u.Name, u.DisplayName, who.Name), u.Email
	return who, nil
}

// user asks Linear about one of the workspace's users; empty when it knows none
// of that id.
func (w *work) user(ctx context.Context, id string) (ql.User, error) {
	var got *ql.ReadUsersResponse
	err := w.call(ctx, Thinking, costUsers, func(c graphql.Client) (err error) {
		got, err = ql.ReadUsers(ctx, c, []string{id})
		return err
	})
	if err != nil {
		return ql.User{}, fmt.Errorf("look up who asks: %w", err)
	}
	if len(got.Users.Nodes) == 0 {
		return ql.User{}, nil
	}
	return got.Users.Nodes[0], nil
}

// bystander is somebody who needs no right for what they ask, by a name that can
// be shown. Linear is asked only if it told none, and what they ask does not
// fail with that.
func (w *work) bystander(ctx context.Context, by session.Person) (session.Person, error) {
	who := bot.Asker{Platform: Platform, ID: by.Login, Name: by.Name, Email: by.Email}
	switch {
	case by.Login == automation:
		who.Name = nobody
	case by.Name == "" && by.Email == "":
		u, err := w.user(ctx, by.Login)
		if err != nil {
			w.app.log.WarnContext(ctx, "who asked in linear was not found out", "err", err)
		}
		who.Name, who.Email = cmp.Or(u.Name, u.DisplayName), u.Email
	}
	if local, _, _ := strings.Cut(who.Email, "@"); who.Name == "" {
		who.Name = local
	}
	p, err := w.gate.Pass(ctx, who, "", "")
	return p.By, err
}
