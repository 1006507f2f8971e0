
;
x0Placeholder*
dtype0*
shape:

RoundRoundx0*
T0
$
IdentityIdentityRound*
T0