import { patient } from './types';
export = patient;
