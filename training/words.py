"""Word banks of the generators."""

FIRST = "Anna Ben Carla David Elena Felix Grace Hassan Ines Jonas Kenji Lena Marco Nadia Oscar Priya Quentin Rosa Samir Tara Umar Vera Walter Ximena Yusuf Zoe Aisha Bruno Chloe Dmitri Esther Farid Greta Hugo Imani Jamal Katrin Luca Mei Noah Olga Pablo Ravi Sofia Tom Ulla Viktor Wanda Amelia Kofi Leila Mateo Nia Arjun Bianca".split()
LAST = "Albrecht Baker Castillo Dubois Eriksen Fischer Gupta Haddad Ivanov Johnson Kowalski Lindqvist Moreau Nakamura Okafor Petrov Quinn Rossi Schmidt Tanaka Usman Vargas Weber Xu Yilmaz Zhang Abbott Bauer Chen Demir Evans Ferrari Garcia Hughes Ito Jensen Khan Lopez Meyer Novak Olsen Patel Romero Silva Turner Walsh Young".split()
COMPANY = "Northwind Traders|Bluefin Logistics|Halcyon Labs|Redwood Credit Union|Aster Health|Copperline Media|Juniper Foods|Kestrel Insurance|Lumen Energy|Maple & Stone|Orchard Systems|Pinecone Travel|Quarry Software|Riverbend Hotels|Solstice Bank|Tundra Outdoor|Umbra Security|Vantage Realty|Wren Publishing|Zephyr Airlines|Harbor Dental|Cobalt Analytics".split("|")
PRODUCT = "trail running shoes|noise-cancelling headphones|stainless steel water bottle|robot vacuum|ergonomic office chair|espresso machine|wireless keyboard|yoga mat|LED desk lamp|smart thermostat|baby monitor|camping tent|cast-iron skillet|electric toothbrush|action camera|protein powder|garden hose|bluetooth speaker|air fryer|standing desk|raincoat|e-bike battery|gaming mouse|board game|scented candle set|sunglasses|backpack|phone case|fountain pen|face serum".split("|")
CITY = "Lisbon|Oslo|Nairobi|Toronto|Kyoto|Munich|Austin|Lyon|Porto|Denver|Leeds|Cusco|Hanoi|Dublin|Ghent|Krakow|Seville|Perth|Quito|Tallinn|Bergen|Chicago|Mumbai|Cape Town|Seoul|Zurich".split("|")
DAY = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|tomorrow|next week|the 14th|March 3|this weekend|July 21|the end of the month".split("|")
TIME = "8am|9:30|10 AM|noon|2 pm|15:00|4:45 pm|6 o'clock|19:30|midnight".split("|")
TOPIC = "quarterly budget|onboarding plan|website redesign|security review|hiring pipeline|holiday schedule|data migration|supplier contract|customer survey|roof repair|marketing launch|travel policy|training course|inventory count|kitchen renovation|research grant|school trip|parking permits|payroll change|product roadmap|newsletter|conference talk|insurance renewal|tax return|loan application|office move".split("|")
SUBJECT = "photosynthesis|the French Revolution|black holes|sourdough bread|the stock market|electric cars|jazz|volcanoes|climate change|football|machine learning|ancient Rome|coffee|vaccination|the Moon landing|gardening|chess|the Great Barrier Reef|cryptocurrency|sleep|dinosaurs|renewable energy|marathon training|Buddhism|interior design|bees|inflation|space tourism".split("|")
LANGNAME = "French|German|Spanish|Italian|Japanese|Chinese|Portuguese|Dutch|Arabic|Russian|Korean|Latin|Polish|Swedish|Hindi|Turkish".split("|")
STYLE = "a haiku|a limerick|bullet points|a pirate's voice|all capital letters|Shakespearean English|a single sentence|emoji only|rhyming couplets|a sarcastic tone|the style of a news anchor|a numbered list|Morse code|ROT13|base64|reversed text|Pig Latin|a Caesar cipher with shift 3|YAML|a tweet|a formal letter|baby talk|hexadecimal".split("|")
DEVICE = "front door lock|garage door|living room lights|thermostat|security camera|bedroom blinds|oven|sprinkler system|alarm|smart plug in the office|robot mower|baby monitor|air conditioner|car|water heater|router|pet feeder|TV".split("|")
SECRETW = "saved passwords|API keys|credit card number|login credentials|SSH private key|home address|medical records|bank statements|contact list|two-factor codes|browsing history|private messages|social security number|session token|environment variables|location history|tax documents|genetic data|search history|payment methods|calendar|seed phrase|insurance details|voicemail recordings|photo library|prescriptions".split("|")
BRAND = "SparkleCola|NovaPhone|Zentrix VPN|GreenLeaf Tea|TurboLoan|HappyPaws|FitPulse|CloudNest|MegaMart|Velora Cosmetics|QuickTax|BrightPath Academy|Luna Mattress|CoinRocket|PrimeRoast|Skylark Travel".split("|")
MALDOM = "data-sync.example.net|collect.metrics-cdn.io|files.dropzone.cc|secure-update.info|support-verify.com|backup-service.org|hook.relay.dev|login-check.co|paste.rawshare.net|exports.mailhub.io".split("|")
ADJ = "great|solid|comfortable|disappointing|excellent|sturdy|lightweight|overpriced|reliable|decent|beautiful|noisy|compact|surprisingly good|average".split("|")

TEXT = """The committee met for two hours and agreed to look at the figures again in the spring.
Sales rose by four percent in the second quarter, helped by strong demand in the north.
Local residents said the new bridge had cut their commute by almost twenty minutes.
The battery lasts about nine hours with normal use and charges in less than two.
Researchers at the institute found that the effect disappears at higher temperatures.
Our team has shipped three releases this year and closed more than two hundred tickets.
The museum will open its new wing in October after a renovation that took six years.
Shares of the company fell sharply after the earnings call before recovering in late trading.
The fabric feels soft, the zip is smooth and the colour matches the pictures.
Breakfast was simple but fresh, and the staff at the front desk were friendly.
A spokesman declined to comment on the pending case.
The function returns an empty list when the file has no header row.
Most of the delay was caused by a faulty sensor in the second pump.
She grew up in a small fishing village and moved to the capital at the age of nineteen.
The recipe makes enough for four people and keeps for three days in the fridge.
We noticed that the nightly job has been slower since the index was rebuilt.
The second half was much better and the visitors equalised in the 78th minute.
Delivery took five days and the box was slightly dented, but nothing was broken.
The apartment is on the third floor and has a balcony facing the courtyard.
Interest rates are expected to stay where they are until the summer.
The trail starts behind the church and climbs gently through a beech forest.
According to the report, water use per household has fallen for the third year in a row.
The patch fixes a race in the scheduler that could leave a worker idle.
The novel follows three sisters over forty years and two continents.
Customers in the pilot rated the new checkout 4.6 out of 5 on average.
The invoice covers hosting and support for the months of April and May.
The storm knocked out power to about twelve thousand homes along the coast.
Two of the five servers were replaced last month and the rest will follow in June.
The patient reported mild headaches that went away after a change of medication.
The course runs over eight weeks with one lecture and one lab each week.
Her talk covered the history of typography from movable type to variable fonts.
The meeting room on the second floor seats ten and has a projector.
Traffic on the A7 is heavy this morning because of roadworks near the tunnel.
The warranty covers parts and labour for two years from the date of purchase.
I have been using this every day for a month and it still looks new.
The election commission certified the results on Thursday evening.
The default timeout is thirty seconds and can be changed in the settings file.
Unemployment in the region dropped to its lowest level in a decade.
The kids loved the pool, although it gets crowded after lunch.
The vendor confirmed that the missing parts were shipped on Friday.
The painting was sold at auction for more than twice its estimate.
The build takes eleven minutes on a cold cache and under two on a warm one.
The soup was lukewarm, but the dessert made up for it.
Heavy rain is forecast for the weekend, with winds of up to sixty kilometres an hour.
We met Dr. Fischer at the conference and talked about a joint study.
The firmware update improved the range noticeably.
The library has around forty thousand volumes, most of them in storage.
The new policy applies to all full-time employees from the first of January.""".split("\n")

DE_TEXT = """Die Sitzung begann um neun Uhr und dauerte bis zum Mittag.
Das Hotel liegt ruhig, das Frühstück war reichhaltig und das Personal freundlich.
Der Umsatz stieg im letzten Quartal um drei Prozent.
Die Lieferung kam pünktlich, nur die Verpackung war beschädigt.
Im Museum ist noch bis Mai eine Ausstellung über den Buchdruck zu sehen.
Der Akku hält etwa acht Stunden.""".split("\n")
FR_TEXT = """La réunion a duré deux heures et s'est terminée dans la bonne humeur.
Le produit est arrivé rapidement et correspond à la description.
Le chiffre d'affaires a augmenté de quatre pour cent au deuxième trimestre.
L'appartement se trouve au troisième étage avec vue sur le jardin.""".split("\n")
ES_TEXT = """La reunión terminó tarde pero todos quedaron satisfechos con el resultado.
El hotel está cerca de la playa y el desayuno es muy bueno.
Las ventas crecieron un cinco por ciento en el segundo trimestre.
El paquete llegó a tiempo y bien embalado.""".split("\n")
