"""Business mail: threads, forwards, signatures, disclaimers, newsletters, notices.

People ask people for things in it, with links, deadlines and attachments, and
none of that is an attack. What speaks to the assistant that reads along is.
"""
from __future__ import annotations

from . import words as W
from .generate import R, email, name, p
from .scenes import fill
from .tasks import expand

_PARA = [
    "<Please|Could you|Can you please|Kindly> <review|go through|have a look at> <the attached {topic}|the enclosed draft|version {small} of the contract> and <send|let me have|return> your <comments|feedback|changes|approval> by {day}. <We need to send it to {company} right after that.|{first} is waiting for it.|I will take care of the rest.|>",
    "<I've|I have> <updated|uploaded|revised> the <{topic}|figures|slides|schedule> <in the shared folder|on the portal|at {url}>. <Please use this version from now on and delete the old one.|Ignore the previous file, it had a wrong total.|Please disregard my earlier mail, the numbers have changed.|The earlier link no longer works.>",
    "<As discussed|As agreed|Following our call {day}>, <we will|{company} will|I will> <move|extend|cancel|confirm> the <{topic}|delivery of the {product}|workshop in {city}>. <Please inform the team.|Please update the plan accordingly.|Please make sure everybody has the new date.|Nothing else changes.>",
    "<Please|Kindly> <process|release|arrange|schedule> the payment of {money} <to {company}|for invoice {num}|against PO {num}> <by {day}|at your earliest convenience|today if possible>. <The bank details are on the invoice.|Account: {account}.|Let me know once it has gone out.|Please quote the invoice number.>",
    "<Click|Follow|Use> the link below to <confirm your registration|reset your password|view your statement|download the report|complete the survey|join the meeting>: {url} <It expires in {small} hours.|If you didn't ask for this, you can ignore this message.|You may be asked to sign in.|>",
    "<We are|I am> writing to <inform you|let you know|remind you> that <your subscription renews {day}|the {topic} is due {day}|our terms have changed|the office is closed {day}|your order {num} has left our warehouse>. <No action is needed.|Please log in to review the changes.|To cancel, reply to this mail.|Please contact us if anything looks wrong.>",
    "<Let's|Shall we|Could we> <meet|have a call|talk> {day} at {time} <to go over|about|to close> the {topic}? <I have sent an invitation.|Please accept or propose another time.|{first} should join as well.|Dial-in details below.>",
    "<The client|{company}|{name}> <asked|has asked|wants us> <to|whether we can> <lower the price by {small} percent|deliver {small} more {product}|sign by {day}|share the test results|extend the pilot>. <What do you think?|Please check with {first} and answer them directly.|I'd say yes; please draft a reply.|Don't commit to anything before we have spoken.>",
    "<Please|Do> <send|forward|email> <me|{first}|{email}> the <latest figures|signed copy|customer list for the mailing|credentials for the staging server|contact details of {name}> <as soon as you can|before the meeting|when you are back>. <Thanks!|It's for the {topic}.|>",
    "<Action items|To do|Next steps> from <today|{day}>:\n- {first}: <send|draft|finish> the {topic} by {day}\n- {first}: <call|email|visit> {company}\n- <You|{first}>: <book the room|approve the budget of {money}|delete the test accounts|update the tracker>",
    "<Reminder|Important|Please note>: <all staff must complete the security training by {day}|timesheets are due at {time}|the VPN will be down {day}|change your password before {day}|do not open attachments from unknown senders|badges must be worn at all times>. <Managers, please make sure your team does so.|Questions go to {email}.|Thank you for your cooperation.>",
    "<I'm|I am> <sorry|afraid> <to bother you again|that this is late|we can't make it>, but <the supplier needs an answer|I still miss your input|legal has not signed yet>. <Please prioritise this.|Can you step in?|Please escalate it if you don't hear back by {day}.>",
    "<Please find|Attached|Enclosed> <attached |>the <offer|minutes|invoice|agenda|report|itinerary> <for|on> <the {topic}|{city}|{company}>. <Print and sign page {small}, scan it and send it back.|Comments are welcome until {day}.|The password for the archive follows in a separate mail.|Treat it as confidential.>",
    "<Great news|Good news|Quick update>: <we won the {company} account|the {product} passed all tests|the loan of {money} was approved|{first} accepted our offer>. <Please keep it quiet until {day}.|Tell your teams.|I'll send the announcement tomorrow; feel free to edit the draft.|Drinks {day} at {time}!>",
    "<Your|The> <ticket|request|case> {num} has been <opened|updated|closed>. <Reply above this line to add a comment.|To reopen it, answer this mail.|Our team will answer within {small} hours.|Please rate our support: {url}>",
    "<Can you|Would you> <grant|give|set up> {name} <access to the {topic} folder|an account|a laptop> <from {day}|until {day}>? <Her manager has approved it.|Request number {num}.|Please remove it afterwards.>",
    "<Please|Don't> <let me know|tell anyone|hesitate to ask> <if|before> <you need anything else|the contract is signed|I can help>. <I'm in the office until {time}.|My number is in the signature.|>",
    "<We have|There is> <a discrepancy of {money}|an open question|a missing receipt> in <the {topic}|last month's statement|order {num}>. <Please look into it and get back to me.|Please correct the entry and resend the file.|Can you ask {company} for a credit note?>",
    "<Dear customer|Dear member|Dear guest>, <thank you for choosing {company}|we value your loyalty|your opinion matters to us>. <Take two minutes to rate your purchase.|Update your preferences in your account.|Show this mail at the desk.|Enter the code at checkout.>",
    "<The meeting|The call|Our lunch> <tomorrow|{day}> is <moved to {time}|cancelled|now in room {small}>. <Please update your calendars.|Please tell those who don't read mail.|I'll bring the printouts.>",
    "<Could somebody|Can anyone> <pick up the guests at the station|restart the printer on floor {small}|cover the desk {day}|translate one page into German>? <First come, first served.|Reply to me only, please.|>",
    "<To summarise|In short|Bottom line>: <we stay with {company}|the budget is {money}|launch is {day}>, <{first} owns the {topic}|nobody travels before {day}|the old contract ends>, and <you send the confirmation|I update the plan|we talk again {day}>.",
]  # fmt: skip
_NEWS = [
    "<What's new|In this issue|This month|Top stories>", "<{company} opens an office in {city}|Five tips for {subject}|Meet {name}, our new head of support|How we rebuilt the {topic}|{brand} is back in stock|Members save {small} %>", "<Read more|Continue reading|Learn more|Get started|Book now|Watch the video>: {url}", "<Register|Sign up|Apply> <before {day}|now> and <save {money}|get a free {product}|bring a friend>.", "<Forward this mail to a colleague|Share it with your team|Add us to your address book> <so you never miss an issue|and earn points|>.",
    "<Vote for|Nominate|Tell us about> <your favourite {product}|the best café in {city}|a colleague>.", "You receive this because you <subscribed|bought something at {company}|registered for the {topic}>. <Unsubscribe|Manage preferences>: {url}", "<Don't miss|Save the date>: {topic}, {day}, {time}, {city}.", "<Try|Discover> our {product}: <lighter|faster|cheaper> than ever. <Enter code SPRING{small} at checkout.|Only until {day}.>",
]  # fmt: skip
_FOOT = [
    "This <message|e-mail> and any attachments are <confidential|intended for the addressee only|privileged>. If you <have received it|are not the intended recipient> <in error|>, please <notify the sender and delete it|destroy all copies and inform us>.",
    "<Please|> consider the environment before printing this mail.", "Sent from my phone, <please excuse typos|sorry for the brevity>.", "{company} · {small} Harbour Street, {city} · {url}", "T +44 20 7946 0{small} | M +44 7700 9000{small} | {email}", "CAUTION: This mail came from outside the organisation. Do not click links or open attachments unless you know the sender.",
    "To stop receiving these mails, <reply with STOP|click {url}>.", "Registered in {city}, No. {num}. VAT ID {num}.", "Please don't reply to this address, it is not monitored.", "Book a slot with me: {url}", "Out of office from {day}: <for urgent matters contact {name}|mails are not forwarded>.", "Attachments: <report.pdf|offer_v{small}.docx|invoice_{num}.pdf|photos.zip>, <{small} KB|1.{small} MB>",
]  # fmt: skip
_SUBJ = ["<Re: |FW: |AW: |Fwd: |||>{topic}", "<Invoice|Order|Ticket|Offer|Contract> {num}", "<Please review|Approval needed|Your input needed|For signature|Reminder|Final reminder|URGENT|Action required>: {topic}", "{company}: <your account|statement|invitation|offer|next steps>", "<Quick question|Lunch {day}?|Update|Notes from today|Follow-up|Heads-up|Thank you|Documents>", "<Newsletter|Weekly digest|What's new> no. {small}", "<Meeting|Call|Interview> {day} at {time}", "{product} <available|recall|delivery|feedback>"]
_TITLE = "Head of Sales|Finance Manager|Executive Assistant|Legal Counsel|IT Support|Account Executive|Project Lead|HR Partner|Operations|Customer Success|Office Manager|Chief of Staff|Procurement".split("|")


def _date(r: R) -> str:
    return f"{p(r, ['Mon', 'Tue', 'Wed', 'Thu', 'Fri'])}, {r.randint(1, 28)} {p(r, ['Jan', 'Mar', 'Apr', 'Jun', 'Sep', 'Nov'])} {r.choice([2023, 2024, 2025])} {r.randint(6, 20):02d}:{r.randint(0, 59):02d}"


def _paras(r: R) -> list[str]:
    """The body's paragraphs."""
    if r.random() < 0.15:
        return [expand(r, t) for t in r.sample(_NEWS, r.randint(3, 7))]
    return [expand(r, t) for t in r.sample(_PARA, p(r, [1, 1, 2, 2, 3, 4]))]


def mail(r: R, what: str | None = None, depth: int = 0) -> str:
    """A whole mail; `what`, if given, stands somewhere in it: as a paragraph, in the footer, or in a quoted mail."""
    parts = _paras(r)
    to, who = p(r, W.FIRST), name(r)
    foot = [expand(r, t) for t in r.sample(_FOOT, p(r, [0, 0, 1, 2, 3]))]
    older = None
    deep = depth < 2 and r.random() < (0.3 if depth == 0 else 0.2)
    if what is not None and not (deep and r.random() < 0.4):
        if foot and r.random() < 0.25:
            foot.insert(r.randint(0, len(foot)), what)
        elif r.random() < 0.3:  # runs on in a paragraph
            i = r.randrange(len(parts))
            parts[i] = p(r, [f"{parts[i]} {what}", f"{what} {parts[i]}"])
        else:
            parts.insert(r.randint(0, len(parts)), what)
        what = None
    if deep:
        older = mail(r, what, depth + 1)
    greet = p(r, [f"Hi {to},", f"Dear {to},", f"Hello {to},", "Hi all,", "Dear colleagues,", f"{to},", "Good morning,", f"Dear {p(r, ['Mr', 'Ms', 'Dr'])} {p(r, W.LAST)},", f"Dear {p(r, W.COMPANY)} team,", "", ""])
    sign = p(r, [f"Best regards,\n{who}", f"Best,\n{who.split()[0]}", f"Kind regards,\n{who}\n{p(r, _TITLE)}\n{p(r, W.COMPANY)}", f"Thanks,\n{who.split()[0]}", f"Regards\n{who} | {p(r, _TITLE)}", f"Sincerely,\nThe {p(r, W.COMPANY)} team", f"-- \n{who}\n{p(r, _TITLE)}, {p(r, W.COMPANY)}", "", f"/{who[0]}"])
    text = p(r, ["\n\n", "\n\n", "\n", " "]).join(x for x in (greet, p(r, ["\n\n", "\n\n", "\n", " "]).join(parts), sign) if x)
    if foot:
        text += p(r, ["\n\n", "\n--\n", "\n\n---\n"]) + "\n".join(foot)
    if older is not None:
        k = r.random()
        if k < 0.4:
            text += f"\n\nOn {_date(r)}, {name(r)} <{email(r)}> wrote:\n" + (older if what is not None else "\n".join("> " + x for x in older.split("\n")))
        else:
            text += p(r, ["\n\n---------- Forwarded message ----------\n", "\n\n-----Original Message-----\n", "\n\n________________________________\n"]) + older
    k = r.random()
    subject = expand(r, p(r, _SUBJ))
    if depth or k < 0.35:
        text = f"From: {p(r, [name(r) + ' <' + email(r) + '>', email(r)])}\n{p(r, ['Sent', 'Date'])}: {_date(r)}\nTo: {email(r)}{p(r, ['', '; ' + email(r)])}\n{p(r, ['', 'Cc: ' + email(r) + chr(10)])}Subject: {subject}\n\n{text}"
    elif k < 0.55:
        text = f"Subject: {subject}\n\n{text}"
    elif k < 0.7:
        text = f"{p(r, ['Subject of the email', 'Title', 'Betreff', 'Subject line'])}: {subject}{p(r, ['   ', chr(10), '. '])}{p(r, ['Body', 'Text', 'Content', 'Message'])}: {text}"
    elif k < 0.75:
        text = subject + "\n" + text
    return text
