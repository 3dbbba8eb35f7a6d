"""Words of names: their base form, short forms, synonyms and opposites, for the comparison of two names.

The tables are English. A word that no table has is compared by its letters alone.
"""

from __future__ import annotations

import re
import unicodedata

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.normalization import normalize


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ARTICLES = _split_set("the a an")
SMALL_WORDS = _split_set("of the and for in de la le du des di with")
LEGAL_FORMS = _split_set(
    "inc incorporated ltd limited llc llp gmbh ag sa plc corp corporation co kg bv nv oy oyj ab"
    " aps spa srl sarl pty pte lda ltda"
)
KINDS = _split_set(
    "university company group holding holdings bank technologies systems software labs airlines museum cafe hotel"
    " restaurant motor motors cars club institute foundation records studios industries city dc"
)
"""Words for the kind of an organization or place, which a shorter form of its name leaves out."""
INSTITUTIONS = KINDS | _split_set(
    "hospital school college academy clinic ministry department lake mount river church theater association"
)
MODIFIERS = _split_set(
    "new old north south east west northern southern eastern western northwest northeast southwest southeast central"
    " great greater upper lower inner outer little big real fc los las el san santa santo saint port fort cape lake"
    " mount lady lord inter united papua american british french german australian canadian african asian"
)
"""Words before a name that make it another name: New York, West Virginia, Real Madrid."""
HEAD_NOUNS = _split_set(
    "hospital school church tower watch music maps press marathon philharmonic orchestra airport station park street"
    " road bridge river mountain mountains beach island islands county province bulls river zoo hall court square"
    " machine shop store office prime pie pot research state tech analytica native"
)
"""Words after a name that make it the name of another thing: Stanford Hospital, Tokyo Tower."""
TWO_SENSES = _split_set("glass arm custom good new work mean water spirit manner minute spectacle brain ground time")
"""Words with a different meaning in the plural."""

_WORD = re.compile(r"[a-z]\.(?:[a-z]\.)+|[^\W_]+(?:'s\b)?[+#]*")
_TITLES = {
    "mr": "mr", "mister": "mr", "mrs": "mrs", "ms": "mrs", "miss": "mrs", "dr": "dr", "doctor": "dr", "prof": "prof",
    "professor": "prof", "sir": "sir",
}  # fmt: skip
_ROMAN = _split_set("ii iii iv vi vii viii ix xi xii")
_NUMBER_WORDS = {
    word: str(value)
    for words in (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "- two three four five six seven eight nine ten eleven twelve",
    )
    for value, word in enumerate(words.split(), start=1)
    if word != "-"
}

_NICKNAMES = """
robert: bob bobby rob robbie bert
william: bill billy will willy liam
elizabeth: liz lizzie beth betty eliza lisbeth libby elsie
richard: rick ricky dick richie rich
james: jim jimmy jamie
john: johnny jack
jonathan: jon jonny
michael: mike mikey mick
thomas: tom tommy
katherine: kate katie kathy kat catherine kathryn kay
katharina: kathi katja
margaret: maggie meg peggy greta marge madge
edward: ed eddie ted ned
theodore: ted teddy theo
charles: charlie chuck chaz
charlotte: charlie lottie
joseph: joe joey
josephine: josie jo
joanna: jo jojo
daniel: dan danny
danielle: dani
matthew: matt matty
anthony: tony ant
antonio: tony toni
andrew: andy drew
andrea: andie
christopher: chris kit topher
christine: chris chrissy
christina: chris chrissy
samuel: sam sammy
samantha: sam sammy
benjamin: ben benny benji
alexander: alex sasha xander
alexandra: alex sasha
nicholas: nick nicky nico
nicole: nicky nikki
jennifer: jen jenny jenn
jessica: jess jessie
patricia: pat patty trish tricia
patrick: pat paddy
rebecca: becky becca beck
susan: sue susie suzie
susanna: sue susie
steven: steve stephen
timothy: tim timmy
david: dave davey
gregory: greg
frederick: fred freddy freddie
victoria: vicky tori vic
victor: vic
vincent: vince vinnie
deborah: debbie deb debra
abigail: abby abbie gail
gabriel: gabe
gabriella: gabby
gabrielle: gabby
nathaniel: nate nat
nathan: nate
natalie: nat
nathalie: nat
jacqueline: jackie jacqui
jacob: jake
zachary: zach zack zac
philip: phil phillip pip
philippa: pippa pip
leonard: leo lenny len
leonardo: leo
leopold: leo poldi
isabella: bella izzy isa
isabel: bella izzy isa
penelope: penny
lawrence: larry laurie
laurence: larry laurie
gerald: gerry jerry
gerard: gerry
jeremy: jerry jez
jeffrey: jeff
geoffrey: geoff jeff
kenneth: ken kenny
ronald: ron ronnie
donald: don donnie
raymond: ray
douglas: doug
peter: pete
stephanie: steph steffi
veronica: ronnie
francis: frank fran
francesca: fran francie chesca
francisco: paco pancho fran
frances: fran frannie
franklin: frank
walter: walt wally
harold: harry hal
henry: harry hank
harriet: hattie
arthur: art artie
albert: al bert bertie
alfred: al alf fred alfie
alan: al
ernest: ernie
eugene: gene
eleanor: ellie nell nora
helen: nell nellie
ellen: nell ellie
emily: em emmy
emma: em emmy
amelia: millie amy
amanda: mandy
melissa: mel missy lissa
melanie: mel
dorothy: dot dottie
judith: judy
barbara: barb babs barbie
cynthia: cindy
lucinda: cindy
theresa: terry tess tessa
terence: terry
virginia: ginny
valerie: val
valentina: val
sebastian: seb bastian
maximilian: max
maxwell: max
dominic: dom
oliver: ollie
olivia: liv livvy
cameron: cam
joshua: josh
simon: si
stanley: stan
martin: marty
martha: marty
marcus: marc
nikolaus: klaus niko
johannes: hannes hans
friedrich: fritz
guadalupe: lupe
jose: pepe
ignacio: nacho
enrique: quique
dolores: lola
mercedes: meche
guillermo: memo
giuseppe: beppe
alessandro: ale sandro
alessandra: ale
anastasia: nastya
dmitri: dima mitya
mikhail: misha
vladimir: vlad vova
yekaterina: katya
aleksandr: sasha sanya
duncan: dunc
sharon: shaz
rosemary: rosie
abraham: abe
solomon: sol
augustus: gus
angus: gus
gustav: gus
"""
_FORMAL: dict[str, set[str]] = {}
for _line in _NICKNAMES.strip().splitlines():
    _whole, _, _short = _line.partition(": ")
    for _one in (_whole, *_short.split()):
        _FORMAL.setdefault(_one, set()).add(_whole)

# Spellings and abbreviations that stand for exactly one word, whatever surrounds them.
_SPELLINGS = {
    "mt": "mount", "ave": "avenue", "blvd": "boulevard", "rd": "road", "univ": "university", "dept": "department",
    "intl": "international", "govt": "government", "natl": "national", "assn": "association", "bros": "brothers",
    "yoghurt": "yogurt", "grey": "gray", "jewellery": "jewelry", "doughnut": "donut", "moustache": "mustache",
    "pyjamas": "pajamas", "programme": "program", "catalogue": "catalog", "dialogue": "dialog", "cheque": "check",
    "licence": "license", "defence": "defense", "aluminium": "aluminum", "mum": "mom", "mums": "moms",
    "centre": "center", "theatre": "theater", "metre": "meter", "litre": "liter", "fibre": "fiber",
    "theatres": "theaters", "centres": "centers", "tyre": "tire", "kerb": "curb", "maths": "math",
    "travelling": "traveling", "counselling": "counseling", "modelling": "modeling", "enrolment": "enrollment",
    "whisky": "whiskey", "hallowe'en": "halloween", "storey": "story", "plough": "plow", "draught": "draft",
}  # fmt: skip
_OUR = re.compile(r"(?<=[a-z]{3})our(?=s?$|ed$|ing$|ful$|ite$|ites$)")
_ISE = re.compile(r"(?<=[a-z]{3})is(?=(?:e|ed|es|er|ers|ing|ation|ations|ational)$)")
_NOT_ISE = _split_set(
    "exercise exercises promise promises premise premises franchise franchises advise advises paradise"
)

_SYNONYMS = """
company firm business employer
car automobile
flat apartment
movie film motion_picture
cinema movie_theater movie_theatre
bicycle bike pushbike
mother mom mommy mummy mama
father dad daddy papa
doctor physician
lawyer attorney
shop store
holiday vacation
sofa couch
television tv tv_set
child kid
friend buddy pal
refrigerator fridge
photograph photo picture
airplane plane aeroplane
motorcycle motorbike
cellphone cell_phone mobile_phone mobile smartphone
lesson class
grandmother grandma granny nan
grandfather grandpa granddad
colleague coworker co_worker workmate
neighbor neighbour
exam examination
laboratory lab
math mathematics
vegetarian veggie
veterinarian vet
dormitory dorm
gymnasium gym
university uni
influenza flu
telephone phone
microphone mic
advertisement ad advert
boss supervisor
house home
problem issue
forest woods
achievement accomplishment
roommate flatmate
backpack rucksack
elevator lift
garbage trash rubbish
candy sweets
cookie biscuit
eggplant aubergine
zucchini courgette
cilantro coriander
pants trousers
sneaker trainer
diaper nappy
stove cooker
raincoat mackintosh
kindergarten preschool
parking_lot car_park
gas_station petrol_station
drugstore pharmacy chemist
bank_card debit_card
swimming_pool pool
grocery groceries
"""
_SYNONYM_OF = {
    word.replace("_", ""): line.split()[0].replace("_", "")
    for line in _SYNONYMS.strip().splitlines()
    for word in line.split()
}
_PHRASES = frozenset(
    tuple(word.split("_")) for line in _SYNONYMS.strip().splitlines() for word in line.split() if "_" in word
)

_OPPOSITES = """
mother father mom dad son daughter brother sister sibling parent child
husband wife fiance fiancee boyfriend girlfriend partner spouse
uncle aunt nephew niece cousin
grandmother grandfather grandma grandpa grandson granddaughter
stepmother stepfather stepbrother stepsister stepson stepdaughter
man woman boy girl
king queen prince princess
monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december
spring summer autumn fall winter
morning noon afternoon evening night midnight day
breakfast lunch dinner supper brunch meal
north south east west northern southern eastern western northeast northwest southeast southwest
left right
upper lower top bottom front back
hot cold warm iced
old new former current previous next
big small large little
red orange yellow green blue purple pink brown black white gray color
cat kitten dog puppy pet
buyer seller
lender borrower
landlord tenant
teacher student
employer employee boss manager
running jogging walking
shrimp lobster crab
tennis badminton squash soccer basketball volleyball baseball rugby hockey football cricket
beer wine tea coffee
maternal paternal
day night
wedding bride groom
finger hand toe foot
house apartment
food meal
backend frontend
"""
_OPPOSITE_SETS = tuple(_split_set(line) for line in _OPPOSITES.strip().splitlines())


@text_cache(8192)
def fold_name(name: str) -> str:
    """Return the letters and digits of a name, without case, accents and punctuation; + and # count, as in C++."""
    plain = normalize("NFKD", name.casefold())
    return "".join(mark for mark in plain if mark.isalnum() or mark in "+#")


def get_initials(name: str) -> str:
    """Return the initials of a name without its small words; empty if it has only one word."""
    words = [word for word in re.findall(r"[^\W_]+", name) if word.casefold() not in SMALL_WORDS]
    return "".join(word[0] for word in words).upper() if len(words) > 1 else ""


@text_cache(8192)
def split_name(name: str) -> tuple[str, ...]:
    """Return the words of a name, folded."""
    plain = normalize("NFKD", name.casefold().replace("’", "'"))
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return tuple(word.replace(".", "") for word in _WORD.findall(plain))


def standard_spelling(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words in American spelling, with abbreviations written out: "Mt Etna" is "mount etna"."""
    last = len(words) - 1
    return tuple(
        ("saint" if index < last else "street") if word == "st" and last else _standard_word(word)
        for index, word in enumerate(words)
    )


@text_cache(8192)
def _standard_word(word: str) -> str:
    if word in _SPELLINGS:
        return _SPELLINGS[word]
    if word in _NUMBER_WORDS:
        return _NUMBER_WORDS[word]
    if re.fullmatch(r"\d+(?:st|nd|rd|th)", word):
        return word[:-2]
    if len(word) > 5:
        word = _OUR.sub("or", word)
        return word if word in _NOT_ISE else _ISE.sub("iz", word)
    return word


def join_phrases(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return words in which each phrase that is a synonym of a word is one word: ("mobile", "phone") is one."""
    joined: list[str] = []
    index = 0
    while index < len(words):
        pair = (*words[index : index + 1], *(singular(word) for word in words[index + 1 : index + 2]))
        size = 2 if pair in _PHRASES else 1
        joined.append("".join(pair) if size > 1 else words[index])
        index += size
    return tuple(joined)


def get_numbers(words: tuple[str, ...]) -> list[str]:
    """Return the numbers in the words of a name, sorted: digits, ordinals and Roman numerals."""
    standard = [_NUMBER_WORDS.get(word, word) for word in words]
    digits = sorted(number for word in standard for number in re.findall(r"\d+", word))
    return digits + sorted(word for word in words if word in _ROMAN)


def get_title(words: tuple[str, ...]) -> str:
    """Return the title that a name begins with; empty if there is none."""
    return _TITLES.get(words[0], "") if len(words) > 1 else ""


def get_formal_names(name: str) -> set[str]:
    """Return the first names that a word can stand for, itself included if it is one."""
    return _FORMAL.get(name, set())


def is_given_name(word: str) -> bool:
    """Return True if a word is in the table of first names."""
    return word in _FORMAL


def are_synonyms(word: str, other: str) -> bool:
    """Return True if two words mean the same in most names."""
    root = _find_synonym(word)
    return bool(root) and root == _find_synonym(other) and singular(word) != singular(other)


def _find_synonym(word: str) -> str:
    """Return the first of the synonyms of a word; empty if none is known."""
    return _SYNONYM_OF.get(word) or _SYNONYM_OF.get(singular(word), "")


def are_opposite(word: str, other: str) -> bool:
    """Return True if two words exclude each other: months, colors, mother and father."""
    one, two = singular(word), singular(other)
    return one != two and not are_synonyms(one, two) and any(one in some and two in some for some in _OPPOSITE_SETS)


def singular(word: str) -> str:
    """Return the singular of a word that looks like a plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "sses", "xes", "zes", "toes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is", "'s")) and len(word) > 3 else word
