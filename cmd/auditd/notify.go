package main

import (
	"context"
	"fmt"

	"example.org/auditd/inference"
	"example.org/auditd/notify"
)

// openNotifier starts telling the owner of new questions, if that is on.
func (d *daemon) openNotifier(ctx context.Context) error {
	c := notify.Config{Desktop: d.cfg.Notify.Desktop, Page: "http://" + d.cfg.Listen + "/", Logger: d.logger, Changes: d.queue.Changes(ctx),
		Waiting: func(ctx context.Context) ([]string, error) {
			list, err := d.queue.Pending(ctx)
			ids := make([]string, len(list))
			for i, q := range list {
				ids[i] = q.ID
			}
			return ids, err
		}}
	url, err := d.cfg.Notify.Webhook, error(nil)
	if d.cfg.Notify.WebhookFile != "" {
		if url, err = inference.ReadKey(d.cfg.Notify.WebhookFile); err != nil {
			return fmt.Errorf("notify.webhook_file: %w", err)
		}
	}
	if url != "" {
		c.Webhook = &notify.Webhook{URL: url, Ntfy: d.cfg.Notify.Form == "ntfy"}
		if c.Webhook.Token, err = inference.ReadKey(d.cfg.Notify.TokenFile); err != nil {
			return fmt.Errorf("notify.token_file: %w", err)
		}
	}
	n, err := notify.New(c)
	if err != nil || n == nil {
		return err
	}
	go n.Run(ctx)
	return nil
}
